// `concertina bench step`: the rate of a real training step, and where its time goes.
// Invariant: every ratio compares figures of the same process in the same run, measured in turns.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct BenchOptions {
  int steps = 10;  // measured, after `warmup`
  int warmup = 3;
  std::string costs;  // file for the costs of the units (experiments/predict/measured_costs.h)
};

/// Collective over `world`; the same result on every rank but for `kernels` and `phases`, which are
/// of the rank itself. Keys: step_ms, tokens_per_s (medians); gemm_flops (of this rank's step),
/// gemm_ms (the products of the busiest rank alone, each at the best rate of its whole matrices in
/// the same round), gemm_limit = gemm_ms / step_ms; tiles_ms and tiles_limit, the same at the rates
/// of our tiles; peak_bytes. With more than one rank also single_tokens_per_s
/// (rank 0 doing the whole batch, the others idle), scaling (speed-up over it / ranks), bound_ms
/// (the schedule's makespan from what F, I, W, B and STEP took, waits and transfers free) and
/// schedule_efficiency = bound_ms / step_ms. With CUDA graphs also issued_ms (a step whose kernels
/// are issued one by one) and graph_speedup = issued_ms / step_ms. Ratios are medians over rounds.
nlohmann::ordered_json bench_step(const RunConfig& config, Communicator& world,
                                  const BenchOptions& options);

/// The config of the model that the project's figures are of, as "table.key=value".
std::vector<std::string> bench_model();

/// The table that a person reads.
std::string bench_step_table(const nlohmann::ordered_json& result);

}  // namespace concertina
