// Everything that is decided from a config before a run allocates memory: model, job and
// assignment. Invariant: pure, except for reading a schedule file that the config names; the same
// on every rank, whether or not the ranks exist.
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

/// The model that the keys of [model] describe, for a microbatch of the run.
ModelConfig model_config_of(const RunConfig& config);

std::unique_ptr<Model> model_of(const RunConfig& config);
/// The optimizer named by `config`.
std::unique_ptr<Optimizer> optimizer_of(const RunConfig& config);

/// The value of `numerics.compute`.
Precision precision_of(const RunConfig& config);

/// The number of tokens or image patches per step; model.context does not give the latter.
std::int64_t tokens_of_step(const RunConfig& config);

/// Returns the job: everything that the run trains, independent of its layout.
Job job_of(const RunConfig& config);
/// The options for reading a text, from the keys of [data]; `config` must name a text.
DataOptions data_options(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer);
/// The data named by the config: its source, or the mixture of its sources (data.weights). `finish`
/// converts each source to the dataset from which samples are drawn.
std::shared_ptr<const Dataset> open_sources(
    const RunConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer,
    const std::function<std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>)>& finish);
/// The tokenizer named by data.tokenizer.
std::shared_ptr<const Tokenizer> tokenizer_of(const RunConfig& config);

/// The request in [parallel] and [freeze] for `world` ranks on `hosts` (by rank; empty: one host).
Request request_of(const RunConfig& config, int world, std::vector<int> hosts = {});

/// The assignment for `config`. Throws Error{bad_input} if world size, model and layout are
/// incompatible. If the layout fits another number N of ranks, the error suggests `launch` with N
/// in place of {}.
Assignment assignment_of(const RunConfig& config, const Job& job, int world,
                         const std::string& launch = {}, std::vector<int> hosts = {});

}  // namespace concertina
