// How far the weights of each layer are from a snapshot of them that the state keeps.
// Invariant: the same bits at every layout: squares are summed in fp64 within the blocks of the
// canonical grid, and these sums are added as integers, in any order.
#pragma once

#include <vector>

#include "experiments/run/trainer.h"

namespace concertina {

/// Takes the snapshot of the weights that train, on every rank.
void take_reference(Trainer& trainer);

/// |w - r| / |w| of each layer that trains, over all weights w and their snapshot r; 0 of a frozen
/// layer; NaN of all layers if a weight is not finite. `layer_of_bucket`: -1 for buckets of none.
/// Collective; the same on every rank.
std::vector<double> weight_drift(Trainer& trainer, std::span<const int> layer_of_bucket,
                                 std::size_t layers);

}  // namespace concertina
