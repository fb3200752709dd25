// Measures the rate of a real training step and its parts, for `concertina bench step`. Invariant:
// every ratio compares interleaved measurements by the same process in the same run.
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
  std::string costs;  // output file for unit costs (experiments/predict/measured_costs.h)
};

/// Collective over `world`. The result is the same on every rank except for `kernels`, `phases` and
/// `gemm_flops`, which describe the rank itself. Keys: step_ms, tokens_per_s (medians); gemm_flops
/// (per step); gemm_ms (the busiest rank's products alone, each by the faster of our tiles and one
/// oneDNN call), gemm_limit = gemm_ms / step_ms; tiles_ms and tiles_limit, the same in our tiles;
/// peak_bytes. With more than one rank, also single_tokens_per_s (rank 0 computes the whole batch
/// while the other ranks are idle), scaling (speed-up over rank 0 alone / ranks), bound_ms (the
/// schedule's makespan with the measured durations of F, I, W, B and STEP, without waits and
/// transfers) and schedule_efficiency = bound_ms / step_ms. With CUDA graphs, also issued_ms (step
/// time with kernels issued one by one) and graph_speedup = issued_ms / step_ms. Ratios are medians
/// over rounds.
nlohmann::ordered_json bench_step(const RunConfig& config, Communicator& world,
                                  const BenchOptions& options);

/// Config keys that define the model in the project's published benchmarks, as "table.key=value".
std::vector<std::string> bench_model();

/// Formats the result as a table.
std::string bench_step_table(const nlohmann::ordered_json& result);

}  // namespace concertina
