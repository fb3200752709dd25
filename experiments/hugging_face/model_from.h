// The source that model.from names: a folder of Hugging Face's transformers, or a run of our own.
#pragma once

#include <optional>
#include "experiments/run/trainer.h"

#include "experiments/config/config.h"
#include "experiments/hugging_face/stored_run.h"

namespace concertina {

/// The run that model.from names; nothing if it is a folder with a config.json. Input error: it is
/// neither.
std::optional<StoredRun> model_from_run(const RunConfig& config);

/// Takes the keys of [model] from model.from, where that is not empty. A config that has them all,
/// as a run's own config.toml, stays as it is: what the run started from need not be there any
/// more.
void adopt_model_from(RunConfig& config);

/// Keeps model.from's config.json, if there is one, with the run.
void keep_model_from(const RunConfig& config);

/// Puts the weights of model.from in the place of those that trainer.initialize() made; each rank
/// reads the tensors of its own units. Heads that the model does not have stay as they were made,
/// and rank 0 says so. Collective.
void start_from(Trainer& trainer, const RunConfig& config);

}  // namespace concertina
