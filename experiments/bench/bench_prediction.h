// `concertina bench prediction`: what the simulator says a step takes, and what it takes.
// Invariant: the costs come from the steps of the first schedule alone; every schedule's steps are
// run in turns in one launch, so that all see the same machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct PredictionOptions {
  std::vector<std::string> schedules;  // NAME, or NAME:CHUNKS
  int steps = 20;                      // measured of each, after `warmup`
  int warmup = 3;
  double bound = 5;  // percent that a prediction may be off
};

/// Collective; the same on every rank. Keys: layout, bound_percent, schedules (schedule, chunks,
/// predicted_ms, measured_ms: median of the slowest rank's steps, ratio, and predicted_compute_ms
/// and measured_compute_ms by rank), ranking_right (no two schedules that differ by more than 1%
/// are predicted in the other order), ok, costs (as costs.json).
nlohmann::ordered_json bench_prediction(const RunConfig& config, Communicator& world,
                                        const PredictionOptions& options);

std::string prediction_table(const nlohmann::ordered_json& result);

}  // namespace concertina
