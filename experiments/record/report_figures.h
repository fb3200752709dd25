// The numbers of `report`: measured, and predicted from what its actions took and
// from its costs.json.
// Invariant: pure. "Bubble" is, here as in metrics.jsonl and in
// parallel/simulate/simulate.h, the idle share of a step: time in which a rank neither computes nor
// updates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/record/run_costs.h"
#include "experiments/record/run_lines.h"
#include "experiments/record/run_trace.h"
#include "parallel/simulate/idle_causes.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// All steps of a run, whatever launch they are of. Each figure is of the steps that have it.
struct StepTotals {
  std::int64_t steps = 0;  // whose time is known
  double seconds = 0;      // that they took
  Figure median_seconds = kNoFigure;
  Figure tokens_per_s = kNoFigure;  // where no time is known, of steps of equally many tokens
  Figure bubble = kNoFigure;        // of the seconds of steps that have one
};
StepTotals total(const std::vector<MetricsPoint>& metrics);
/// Absent figures have no key.
nlohmann::ordered_json to_json(const StepTotals& totals);

struct RankFigures {
  double bubble = 0, predicted_bubble = 0;
  IdleCauses causes;  // shares of the step; they add up to bubble
  MemoryUse peak, predicted_peak;
};

struct ReportFigures {
  Costs costs;                // costs_of()
  std::string costs_missing;  // KnownCosts::missing
  Timeline predicted;
  std::size_t typical = 0;                    // the recorded step of median length
  double seconds = 0, predicted_seconds = 0;  // of that step
  std::vector<RankFigures> ranks;             // means over the recorded steps; peaks, the largest

  /// Predicted over measured time, minus 1.
  double error() const { return predicted_seconds / seconds - 1; }
  double bubble() const;
  double predicted_bubble() const;
  /// Means over ranks; they add up to bubble().
  IdleCauses causes() const;
};
ReportFigures compute_figures(const RunTrace& trace, const KnownCosts& known);

/// Saved bytes of `rank` over time if its row ran at `times`: the executor's lifetimes
/// (parallel/plan/plan_memory.h).
std::vector<MemorySample> saved_over_time(const RunTrace& trace, std::size_t rank,
                                          const std::vector<Interval>& times);

/// By the name of the cause.
nlohmann::ordered_json to_json(const IdleCauses& causes);
nlohmann::ordered_json to_json(const RunTrace& trace, const ReportFigures& figures);

}  // namespace concertina
