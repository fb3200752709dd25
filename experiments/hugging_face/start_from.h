// The initial weights of a run from a model that is stored.
#pragma once

#include "experiments/run/trainer.h"

namespace concertina {

/// Puts the weights of model.from in the place of those that trainer.initialize() made; each rank
/// reads the tensors of its own units. Heads that the model does not have stay as they were made,
/// and rank 0 says so. Collective.
void start_from(Trainer& trainer, const RunConfig& config);

}  // namespace concertina
