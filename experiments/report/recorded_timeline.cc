#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/text/number_text.h"
#include "experiments/report/recorded_metrics.h"
#include "experiments/timeline/timeline_rows.h"

namespace concertina {
namespace {

using Waits = std::vector<std::vector<WorkBox>>;

void add_wait(WorkKind kind, const std::string& what, double start, double end,
              std::vector<WorkBox>& waits) {
  if (end > start) waits.push_back({.work = kind, .start = start, .end = end, .what = what});
}

/// When `rank` and the ranks with which it shares gradients have computed them all, as predicted.
double last_gradient(const RunTrace& trace, const ReportMetrics& metrics, std::size_t rank) {
  double last = 0;
  for (const BucketCosts& bucket : metrics.costs.buckets) {
    if (std::ranges::count(bucket.ranks, static_cast<int>(rank)) == 0) continue;
    for (const int holder : bucket.ranks) {
      const auto& row = trace.plan.rows[static_cast<std::size_t>(holder)];
      for (std::size_t i = 0; i < row.size(); ++i)
        if (is_compute(row[i].kind))
          last = std::max(last, metrics.predicted.rows[static_cast<std::size_t>(holder)][i].end);
    }
  }
  return last;
}

/// Predicted waits after the last gradient and in STEP.
Waits predicted_waits(const RunTrace& trace, const ReportMetrics& metrics) {
  Waits waits(trace.plan.rows.size());
  for (std::size_t rank = 0; rank < waits.size(); ++rank) {
    const std::vector<Action>& row = trace.plan.rows[rank];
    const std::vector<Interval>& times = metrics.predicted.rows[rank];
    const double computed = last_gradient(trace, metrics, rank);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].kind == Kind::REDUCE)
        add_wait(WorkKind::reduction, "waits for the transfer: gradients of other ranks",
                 std::max(i > 0 ? times[i - 1].end : 0, computed), times[i].end, waits[rank]);
      if (row[i].kind != Kind::STEP || metrics.costs.ranks.empty()) continue;
      const RankCosts& own = metrics.costs.ranks[rank];
      add_wait(WorkKind::exchange, "waits for the transfer: weights of other ranks",
               times[i].start + own.norm + own.update, times[i].end - own.refresh, waits[rank]);
    }
  }
  return waits;
}

std::string wait_text(const WaitTime& wait, const Layout& layout) {
  switch (wait.what) {
    case WaitFor::reduction:
      return "gradients of other ranks";
    case WaitFor::ranks:
      return "all ranks";
    case WaitFor::weights:
      return "weights of other ranks";
    default:
      return title(wait.transfer, layout);
  }
}

/// The step with the median duration. Each wait is split at the time when the computation that it
/// depends on ended.
TimelinePanel measured_panel(const RunTrace& trace, const ReportMetrics& metrics) {
  const std::vector<StepRecord>& step = trace.steps[metrics.typical];
  const auto computed = computed_until(trace.plan, trace.layout, step);
  const double origin = span_of(step).start;
  TimelinePanel panel{
      fmt::format("Measured: {} (step {})", duration_text(metrics.seconds), step[0].step),
      trace.plan,
      trace.layout,
      {},
      {},
      Waits(step.size())};
  // STEP belongs entirely to the optimizer, except for its waits.
  panel.costs.ranks.assign(step.size(), {.norm = std::numeric_limits<double>::infinity()});
  panel.timeline.makespan = metrics.seconds;
  for (std::size_t rank = 0; rank < step.size(); ++rank) {
    std::vector<Interval>& times = panel.timeline.rows.emplace_back();
    for (const ActionTime& time : step[rank].actions)
      times.push_back({time.start - origin, time.end - origin});
    for (std::size_t i = 0; i < step[rank].waits.size(); ++i) {
      const WaitTime& wait = step[rank].waits[i];
      const std::string what = wait_text(wait, trace.layout);
      const double until = computed[rank][i] - origin;
      const Cause cause = cause_of(wait.what);
      add_wait(WorkKind::idle, "idle until computed: " + what, wait.start - origin, until,
               panel.waits[rank]);
      add_wait(cause == Cause::transfer    ? WorkKind::transfer
               : cause == Cause::reduction ? WorkKind::reduction
                                           : WorkKind::exchange,
               "waits for the transfer: " + what, until, wait.end - origin, panel.waits[rank]);
    }
  }
  return panel;
}

}  // namespace

nlohmann::ordered_json recorded_timeline(const RunTrace& trace, const ReportMetrics& metrics) {
  constexpr double kInches = 9;  // of the page
  const TimelinePanel predicted{
      fmt::format("Predicted: {}", duration_text(metrics.predicted_seconds)),
      trace.plan,
      trace.layout,
      metrics.costs,
      metrics.predicted,
      predicted_waits(trace, metrics)};
  nlohmann::ordered_json json =
      timelines_json({predicted, measured_panel(trace, metrics)}, kInches);
  json["unit"] = "ms";
  return json;
}

}  // namespace concertina
