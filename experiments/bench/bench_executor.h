// `concertina bench executor`: what interpreting a plan costs at run time.
// Invariant: shares of one step, of one process, in one run; steps with and without tracing take
// turns.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct ExecutorBenchOptions {
  int steps = 10;    // of each kind, after two that warm up
  double bound = 1;  // percent
};

/// Collective. The executor's overhead is the time of a step that is neither inside a stage's
/// units, nor loading data, nor the update, nor a wait: posting, testing transfers (and what a test
/// copies), bookkeeping, clocks and records. Keys: `untraced` and `traced`, each with step_ms and
/// medians over steps of the worst rank's overhead (share of the step), overhead_ms, and of the
/// same rank stage_ms, update_ms, wait_ms; `ok`: both overheads are within the bound.
nlohmann::ordered_json bench_executor(const RunConfig& config, Communicator& world,
                                      const ExecutorBenchOptions& options);

std::string executor_table(const nlohmann::ordered_json& result);

}  // namespace concertina
