// From a config to what is decided before a run has any memory: model, job and assignment.
// Invariant: pure but for the schedule file that a config may name; the same on every rank, and the
// same whether ranks exist or not.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/model/optimizer.h"
#include "experiments/config/config.h"
#include "io/datasets/dataset.h"
#include "models/model.h"
#include "parallel/generate/assign.h"

namespace concertina {

/// The keys of [model], for a microbatch of the run.
ModelConfig model_config_of(const RunConfig& config);

std::unique_ptr<Model> model_of(const RunConfig& config);
/// The optimizer that `config` names.
std::unique_ptr<Optimizer> optimizer_of(const RunConfig& config);

/// The value of `numerics.compute`.
Precision precision_of(const RunConfig& config);

/// Tokens, or patches of images, of one step: model.context does not say how many a family has.
std::int64_t tokens_of_step(const RunConfig& config);

/// Returns the job: all that the run trains, whatever its layout.
Job job_of(const RunConfig& config);
/// The keys of [data] for a text; `config` names one.
DataOptions data_options(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer);
/// The data that the config names: its source, or the mixture of them (data.weights). `finish`
/// makes of each source what is drawn from.
std::shared_ptr<const Dataset> open_sources(
    const RunConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer,
    const std::function<std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>)>& finish);
/// data.tokenizer.
std::shared_ptr<const Tokenizer> tokenizer_of(const RunConfig& config);

/// The request of `parallel` and `freeze` in a world of so many ranks on `hosts` (by rank; empty:
/// one).
Request request_of(const RunConfig& config, int world, std::vector<int> hosts = {});

/// The assignment that `config` asks for. Throws Error{bad_input} if the world size, the model and
/// the layout do not go together. Where the layout fits another number N of ranks, the error says
/// to try `launch` with N for its {}.
Assignment assignment_of(const RunConfig& config, const Job& job, int world,
                         const std::string& launch = {}, std::vector<int> hosts = {});

}  // namespace concertina
