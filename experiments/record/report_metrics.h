// The values of `report`: measured, and predicted from the durations of actions and from
// costs.json. Invariant: pure. "Bubble" is the share of a step in which a rank neither computes nor
// updates, as in metrics.jsonl and parallel/simulate/simulate.h.
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

/// Totals over all steps in all launches of a run. Each value covers the steps that record it.
struct StepTotals {
  std::int64_t steps = 0;  // with a known duration
  double seconds = 0;      // total duration
  MetricValue median_seconds = kNoValue;
  MetricValue tokens_per_s = kNoValue;  // without durations, assumes equal tokens per step
  MetricValue bubble = kNoValue;        // share of the time of steps that record it
};
StepTotals total(const std::vector<MetricsPoint>& metrics);
/// Omits the keys of absent values.
nlohmann::ordered_json to_json(const StepTotals& totals);

struct RankMetrics {
  double bubble = 0, predicted_bubble = 0;
  IdleCauses causes;  // shares of the step, which sum to bubble
  MemoryUse peak, predicted_peak;
};

struct ReportMetrics {
  Costs costs;                // costs_of()
  std::string costs_missing;  // KnownCosts::missing
  Timeline predicted;
  std::size_t typical = 0;                    // index of the recorded step with the median duration
  double seconds = 0, predicted_seconds = 0;  // of that step
  std::vector<RankMetrics> ranks;             // means over recorded steps; maxima of peaks

  /// Predicted over measured duration, minus 1.
  double error() const { return predicted_seconds / seconds - 1; }
  double bubble() const;
  double predicted_bubble() const;
  /// Means over ranks, which sum to bubble().
  IdleCauses causes() const;
};
ReportMetrics compute_metrics(const RunTrace& trace, const KnownCosts& known);

/// Saved bytes of `rank` over time if its row ran at `times`, with the executor's lifetimes
/// (parallel/plan/plan_memory.h).
std::vector<MemorySample> saved_over_time(const RunTrace& trace, std::size_t rank,
                                          const std::vector<Interval>& times);

/// Keys are the names of the causes.
nlohmann::ordered_json to_json(const IdleCauses& causes);
nlohmann::ordered_json to_json(const RunTrace& trace, const ReportMetrics& metrics);

}  // namespace concertina
