// Samples whose chance comes again: masks, crops, flips and offsets of windows.
// Invariant: epoch e of training holds what epoch e % k of the dataset does, in another order.
#pragma once

#include <cstdint>
#include <memory>

#include "io/datasets/dataset.h"

namespace concertina {

/// `dataset` with so many views of each sample of training (data.views), by turns of the epochs; as
/// it is where its samples come again anyway, or with 0.
std::shared_ptr<const Dataset> with_views(std::shared_ptr<const Dataset> dataset,
                                          std::uint64_t views);

}  // namespace concertina
