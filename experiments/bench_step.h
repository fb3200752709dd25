// `concertina bench step`: the rate of a real training step, and where its time goes.
// Invariant: every ratio compares figures of the same process in the same run, measured in turns.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/config.h"
#include "parallel/communicator.h"

namespace concertina {

struct BenchOptions {
  int steps = 10;  // measured, behind `warmup`
  int warmup = 3;
};

/// Collective over `world`; the same result on every rank. Keys: step_ms, tokens_per_s (medians);
/// gemm_flops, gemm_ms (the step's products alone, at the rate measured for each shape here),
/// gemm_limit = gemm_ms / step_ms, all of the busiest rank; kernels, phases (ms of that rank's
/// step); peak_bytes. With more than one rank also single_tokens_per_s (rank 0 alone doing the
/// whole batch, steps in turn with the others), scaling (of `world` times that), bound_ms (the
/// schedule's makespan from the measured action times, free transfers) and schedule_efficiency
/// = bound_ms / step_ms.
nlohmann::ordered_json bench_step(const RunConfig& config, Communicator& world,
                                  const BenchOptions& options);

/// The table that a person reads.
std::string bench_step_table(const nlohmann::ordered_json& result);

}  // namespace concertina
