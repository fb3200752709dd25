// What `report` says of a run, as numbers: measured, and predicted from what its actions took and
// from its costs.json.
// Invariant: pure, but for load_run(). "Bubble" is, here as in metrics.jsonl and in
// parallel/simulate/simulate.h, the idle share of a step: time in which a rank neither computes nor
// updates.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/known_costs.h"
#include "experiments/report/run_trace.h"
#include "parallel/simulate/idle_causes.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// What one line of metrics.jsonl says.
struct MetricsPoint {
  double step = 0, loss = 0, tokens_per_s = 0;
};

/// What a run directory holds.
struct RunFiles {
  RunTrace trace;
  std::vector<MetricsPoint> metrics;
  std::string config;  // config.toml
  KnownCosts known;    // costs.json
};
/// Throws Error{bad_input} if there is no trace, or a damaged one.
RunFiles load_run(const std::string& directory);

struct RankFigures {
  double bubble = 0, predicted_bubble = 0;
  IdleCauses causes;  // shares of the step; they add up to bubble
  MemoryUse peak, predicted_peak;
};

struct ReportFigures {
  Costs costs;                // trace_costs.h
  std::string costs_missing;  // KnownCosts::missing
  Timeline predicted;
  std::size_t typical = 0;                    // the recorded step of median length
  double seconds = 0, predicted_seconds = 0;  // of that step
  std::vector<RankFigures> ranks;             // means over the recorded steps; peaks, the largest

  /// Predicted over measured time, minus 1.
  double error() const { return predicted_seconds / seconds - 1; }
  double bubble() const;
  double predicted_bubble() const;
};
ReportFigures compute_figures(const RunTrace& trace, const KnownCosts& known);

/// Saved bytes of `rank` over time if its row ran at `times`: the executor's lifetimes
/// (parallel/plan/plan_memory.h).
std::vector<MemorySample> saved_over_time(const RunTrace& trace, std::size_t rank,
                                          const std::vector<Interval>& times);

nlohmann::ordered_json to_json(const RunTrace& trace, const ReportFigures& figures);

}  // namespace concertina
