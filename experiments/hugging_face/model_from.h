// The source named by model.from: a Hugging Face transformers folder, or a Concertina run.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "experiments/config/config.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/trainer.h"

namespace concertina {

/// The run in model.from; nullopt if it is a folder with a config.json. Input error: it is neither.
std::optional<StoredRun> model_from_run(const RunConfig& config);

/// Takes the keys of [model] from model.from, if it is not empty. A config that sets them all, such
/// as a run's own config.toml, is left unchanged, since the source may no longer exist.
void adopt_model_from(RunConfig& config);

/// Copies model.from's config.json, if any, to the run.
void keep_model_from(const RunConfig& config);

/// Replaces the weights that trainer.initialize() created with those in model.from; each rank reads
/// the tensors of its units. Heads that the model lacks keep their initial weights, and rank 0 logs
/// this. Collective.
void start_from(Trainer& trainer, const RunConfig& config);

/// Replaces the weights with the mean of those of `commits`, which must have the same tensors.
/// Collective.
void start_from_mean(Trainer& trainer, std::span<const std::string> commits,
                     const RunConfig& config);

}  // namespace concertina
