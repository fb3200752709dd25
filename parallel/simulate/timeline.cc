#include "parallel/simulate/timeline.h"

#include <algorithm>

#include "core/index.h"
#include "parallel/plan/plan_memory.h"

namespace concertina {
namespace {

/// Seconds of compute in one row; two overlapping actions share one interval.
double compute_seconds(const std::vector<Action>& row, const std::vector<Interval>& times) {
  double seconds = 0;
  for (std::size_t i = 0; i < row.size(); i += row[i].overlapped ? 2 : 1)
    if (is_compute(row[i].kind)) seconds += times[i].end - times[i].start;
  return seconds;
}

/// Seconds that the rank's own work in STEP takes.
double step_seconds(const std::vector<Action>& row, const Costs& costs, std::size_t rank) {
  if (row.empty() || row.back().kind != Kind::STEP || costs.ranks.empty()) return 0;
  const RankCosts& own = costs.ranks[rank];
  return own.norm + own.update + own.refresh;
}

/// The number of the action that ends last.
int last_action(const Timeline& timeline, const std::vector<int>& begins) {
  int last = -1;
  double end = -1;
  for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank)
    if (const auto& row = timeline.rows[rank]; !row.empty() && row.back().end > end) {
      end = row.back().end;
      last = begins[rank + 1] - 1;
    }
  return last;
}

/// Traces back from the action that ends last, along the causes of waits.
std::vector<PathStep> critical_path(const Timeline& timeline, const Plan& plan,
                                    const std::vector<Delay>& delays,
                                    const std::vector<int>& begins) {
  std::vector<PathStep> path;
  for (int node = last_action(timeline, begins); node >= 0;) {
    const auto row = std::upper_bound(begins.begin(), begins.end(), node) - 1;
    const int rank = static_cast<int>(row - begins.begin()), position = node - *row;
    const std::vector<Interval>& times = timeline.rows[at(rank)];
    // An overlapped pair is one step of the path, represented by its first action.
    if (position > 0 && plan.rows[at(rank)][at(position - 1)].overlapped) {
      --node;
      continue;
    }
    const double before = position > 0 ? times[at(position - 1)].end : 0;
    const Delay& delay = delays[at(node)];
    path.push_back({rank, position, delay.wait, times[at(position)].start - before});
    node = delay.node >= 0 ? delay.node : position > 0 ? node - 1 : -1;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

/// From the start of the first compute action to the end of the last one.
Interval compute_span(const std::vector<Action>& row, const std::vector<Interval>& times) {
  Interval span{-1, 0};
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind)) continue;
    if (span.start < 0) span.start = times[i].start;
    span.end = std::max(span.end, times[i].end);
  }
  return {std::max(span.start, 0.0), span.end};
}

/// Sets `busy`, `bubble` and `mean_bubble` from `compute` and `makespan`.
void add_idle(Timeline& timeline, const Plan& plan, const Costs& costs) {
  double idle = 0;
  int working = 0;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    const double busy = timeline.compute[rank] + step_seconds(plan.rows[rank], costs, rank);
    timeline.busy.push_back(busy);
    timeline.bubble.push_back(timeline.makespan > 0 ? 1 - busy / timeline.makespan : 0);
    if (!plan.rows[rank].empty()) idle += timeline.bubble[rank], ++working;
  }
  timeline.mean_bubble = working > 0 ? idle / working : 0;
}

}  // namespace

std::vector<Interval> compute_spans(const Plan& plan, const Timeline& timeline) {
  std::vector<Interval> spans;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    spans.push_back(compute_span(plan.rows[rank], timeline.rows[rank]));
  return spans;
}

double longest_span(const Plan& plan, const Timeline& timeline) {
  double longest = 0;
  for (const Interval& span : compute_spans(plan, timeline))
    longest = std::max(longest, span.end - span.start);
  return longest;
}

IdleOverIdeal idle_over_ideal(const Plan& plan, const Timeline& timeline) {
  IdleOverIdeal idle;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    const double busy = timeline.busy[rank], compute = timeline.compute[rank];
    if (busy > 0) idle.step = std::max(idle.step, timeline.makespan / busy - 1);
    const Interval span = compute_span(plan.rows[rank], timeline.rows[rank]);
    if (compute > 0) idle.span = std::max(idle.span, (span.end - span.start) / compute - 1);
  }
  return idle;
}

void complete(Timeline& timeline, const Plan& plan, const std::vector<StageInfo>& stages,
              const Costs& costs, const std::vector<Delay>& delays,
              const std::vector<int>& begins) {
  for (const std::vector<Interval>& row : timeline.rows)
    for (const Interval& interval : row)
      timeline.makespan = std::max(timeline.makespan, interval.end);
  const auto saves = [&](int stage, std::size_t amount) {
    return stages[at(stage)].trains ? amount : 0;
  };
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    const std::vector<Action>& row = plan.rows[rank];
    timeline.compute.push_back(compute_seconds(row, timeline.rows[rank]));
    timeline.peak_activations.push_back(
        static_cast<int>(peak_saved(row, [&](int stage) { return saves(stage, 1); })));
    timeline.peak_activation_bytes.push_back(peak_saved(
        row, [&](int stage) { return saves(stage, costs.stages[at(stage)].saved_bytes); }));
  }
  add_idle(timeline, plan, costs);
  timeline.critical_path = critical_path(timeline, plan, delays, begins);
}

}  // namespace concertina
