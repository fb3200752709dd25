// Samples whose random variation repeats: masks, crops, flips and offsets of windows. Invariant:
// training epoch e contains the samples of epoch e % k of the dataset, in a different order.
#pragma once

#include <cstdint>
#include <memory>

#include "io/datasets/dataset.h"

namespace concertina {

/// Returns `dataset` with `views` variants of each training sample (data.views), used in successive
/// epochs. Returns it unchanged if its samples repeat anyway or `views` is 0.
std::shared_ptr<const Dataset> with_views(std::shared_ptr<const Dataset> dataset,
                                          std::uint64_t views);

}  // namespace concertina
