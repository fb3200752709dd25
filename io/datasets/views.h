// Samples whose random variation repeats: masks, crops, flips and window offsets. Invariant: with k
// views, training epoch e has the samples of the dataset's epoch e % k, in a different order.
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
