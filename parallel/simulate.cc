#include "parallel/simulate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "parallel/plan_graph.h"
#include "parallel/plan_memory.h"

namespace concertina {
namespace {

double seconds(const Action& action, const Costs& costs) {
  if (!is_compute(action.kind)) return 0;
  const StageCosts& stage = costs.stages[action.stage];
  if (action.kind == Kind::F) return stage.forward;
  if (action.kind == Kind::I) return stage.input;
  if (action.kind == Kind::W) return stage.weight;
  return stage.input + stage.weight;
}

/// Start and end of every node but REDUCE and STEP, as the longest path to it.
std::vector<Interval> run(const Plan& plan, const PlanIndex& index, const Costs& costs) {
  const PlanGraph graph = make_graph(plan, index, Channels::pairs);
  std::vector<double> cost;
  cost.reserve(graph.nodes());
  for (const std::vector<Action>& row : plan.rows) {
    double overlapped = 0;  // of the F that runs together with the next action
    for (const Action& action : row) {
      const double all = std::exchange(overlapped, 0) + seconds(action, costs);
      cost.push_back(action.overlapped ? 0 : all);
      if (action.overlapped) overlapped = all;
    }
  }
  cost.resize(graph.nodes(), costs.latency + costs.boundary_bytes / costs.bandwidth);

  std::vector<Interval> nodes(graph.nodes());
  const std::vector<int> order = graph.order();
  CONCERTINA_CHECK(static_cast<int>(order.size()) == graph.nodes(),
                   "the plan to simulate deadlocks: check it first");
  for (const int node : order) {
    nodes[node].end = nodes[node].start + cost[node];
    for (int e = graph.edge_begin[node]; e < graph.edge_begin[node + 1]; ++e) {
      double& start = nodes[graph.edge_to[e]].start;
      start = std::max(start, nodes[node].end);
    }
  }
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i)
      if (plan.rows[rank][i].overlapped) {
        const auto node = static_cast<std::size_t>(index.row_begin()[rank]) + i;
        nodes[node] = nodes[node + 1];
      }
  return nodes;
}

/// When each stage's gradients are reduced: its last unit's last gradient on any rank, and the
/// cost.
std::vector<double> reduction_ends(const Plan& plan, const Layout& layout, const Costs& costs,
                                   const Timeline& timeline) {
  int units = 0;
  std::vector<StagePlacement> stages;
  for (const Pipeline& pipeline : layout.pipelines)
    stages.insert(stages.end(), pipeline.stages.begin(), pipeline.stages.end());
  for (const StagePlacement& stage : stages) units = std::max(units, stage.last_unit);

  std::vector<double> last_gradient(units, 0);
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i) {
      const Action& action = plan.rows[rank][i];
      if (action.kind != Kind::B && action.kind != Kind::W) continue;
      const StagePlacement& stage = stages[action.stage];
      for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
        last_gradient[unit] = std::max(last_gradient[unit], timeline.rows[rank][i].end);
    }
  }
  std::vector<double> ends;
  for (std::size_t s = 0; s < stages.size(); ++s)
    ends.push_back(*std::max_element(last_gradient.begin() + stages[s].first_unit,
                                     last_gradient.begin() + stages[s].last_unit) +
                   costs.stages[s].reduce);
  return ends;
}

/// REDUCE and STEP stand at the end of each row and wait for all ranks, not for one action.
void run_tails(const Plan& plan, const Layout& layout, const Costs& costs, Timeline& timeline) {
  const std::vector<double> reduced = reduction_ends(plan, layout, costs, timeline);
  double all_reduced = 0;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    double now = 0;
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i) {
      const Action& action = plan.rows[rank][i];
      Interval& interval = timeline.rows[rank][i];
      if (action.kind == Kind::REDUCE) interval = {now, std::max(now, reduced[action.stage])};
      now = std::max(now, interval.end);
    }
    all_reduced = std::max(all_reduced, now);
  }
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    if (!plan.rows[rank].empty() && plan.rows[rank].back().kind == Kind::STEP)
      timeline.rows[rank].back() = {all_reduced, all_reduced + costs.step};
}

void summarize(const Plan& plan, const Costs& costs, Timeline& timeline) {
  for (const std::vector<Interval>& row : timeline.rows)
    for (const Interval& interval : row)
      timeline.makespan = std::max(timeline.makespan, interval.end);
  for (const std::vector<Action>& row : plan.rows) {
    double busy = 0;
    for (const Action& action : row)
      busy += action.kind == Kind::STEP ? costs.step : seconds(action, costs);
    timeline.busy.push_back(busy);
    timeline.bubble.push_back(timeline.makespan > 0 ? 1 - busy / timeline.makespan : 0);
    timeline.peak_activations.push_back(
        static_cast<int>(peak_saved(row, [](int) { return std::size_t{1}; })));
    timeline.peak_activation_bytes.push_back(
        peak_saved(row, [&](int stage) { return costs.stages[stage].saved_bytes; }));
  }
  timeline.mean_bubble = std::accumulate(timeline.bubble.begin(), timeline.bubble.end(), 0.0) /
                         static_cast<double>(std::max<std::size_t>(1, timeline.bubble.size()));
}

}  // namespace

Costs unit_costs(const Layout& layout) {
  Costs costs;
  costs.stages.resize(layout.stage_count());
  return costs;
}

Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs) {
  CONCERTINA_CHECK(static_cast<int>(costs.stages.size()) == layout.stage_count(),
                   "costs of {} stages for {} stages", costs.stages.size(), layout.stage_count());
  const PlanIndex index(plan, layout);
  const std::vector<Interval> nodes = run(plan, index, costs);
  Timeline timeline;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    timeline.rows.emplace_back(nodes.begin() + index.row_begin()[rank],
                               nodes.begin() + index.row_begin()[rank + 1]);
  run_tails(plan, layout, costs, timeline);
  summarize(plan, costs, timeline);
  return timeline;
}

}  // namespace concertina
