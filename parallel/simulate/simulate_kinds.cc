#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "parallel/plan/replica_kinds.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

/// Replicas meet in STEP alone: they exchange nothing before it, and messages occupy no link.
bool independent(const Costs& costs) {
  return costs.buckets.empty() && costs.pairs.empty() && costs.hosts.empty() &&
         std::isinf(costs.local.bandwidth);
}

/// What a replica's actions take until STEP.
ReplicaKinds::Traits traits_of(const Costs& costs) {
  return [&costs](const ReplicaPlace& begin, const ReplicaPlace& end, std::vector<double>& key) {
    for (int stage = begin.stage; stage < end.stage; ++stage) {
      const StageCosts& one = costs.stages[at(stage)];
      key.insert(key.end(), {one.forward, one.input, one.weight, one.fused,
                             static_cast<double>(one.saved_bytes), static_cast<double>(one.units)});
    }
    for (int rank = begin.rank; rank < end.rank && !costs.ranks.empty(); ++rank)
      key.push_back(costs.ranks[at(rank)].load);
  };
}

/// `costs` of one replica of each kind; `ranks`: ReplicaKinds::ranks().
Costs costs_of(const ReplicaKinds& kinds, const std::vector<int>& ranks, const Costs& costs) {
  Costs result = costs;
  result.stages.clear();
  for (const int stage : kinds.stages()) result.stages.push_back(costs.stages[at(stage)]);
  result.ranks.clear();
  for (std::size_t rank = 0; rank < ranks.size() && !costs.ranks.empty(); ++rank) {
    result.ranks.resize(std::max(result.ranks.size(), at(ranks[rank]) + 1));
    result.ranks[at(ranks[rank])].load = costs.ranks[rank].load;
  }
  return result;
}

bool ends_in_step(const std::vector<Action>& row) {
  return !row.empty() && row.back().kind == Kind::STEP;
}

/// The time at which each rank of `plan` comes to STEP, or ends.
std::vector<double> computed_until(const Plan& plan, const Timeline& timeline, const Costs& costs) {
  std::vector<double> ends;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    const std::size_t actions = plan.rows[rank].size() - (ends_in_step(plan.rows[rank]) ? 1 : 0);
    ends.push_back(actions > 0           ? timeline.rows[rank][actions - 1].end
                   : costs.ranks.empty() ? 0
                                         : costs.ranks[rank].load);
  }
  return ends;
}

/// The end of the step, of which ranks come to STEP at `met` and all update their parts together.
double step_end(const Plan& plan, const std::vector<double>& met, const Costs& costs) {
  const auto own = [&](std::size_t rank) {
    return costs.ranks.empty() ? RankCosts{} : costs.ranks[rank];
  };
  double start = 0, end = std::ranges::max(met);
  for (std::size_t rank = 0; rank < met.size(); ++rank)
    if (ends_in_step(plan.rows[rank])) start = std::max(start, met[rank] + own(rank).norm);
  if (plan.rows.size() > 1) start += costs.local.latency;
  for (std::size_t rank = 0; rank < met.size(); ++rank)
    if (ends_in_step(plan.rows[rank]))
      end = std::max(end, start + own(rank).update + own(rank).refresh);
  return end;
}

}  // namespace

Timeline simulate_figures(const Plan& plan, const Layout& layout, const Costs& costs) {
  if (!independent(costs)) return simulate(plan, layout, costs);
  const ReplicaKinds kinds(layout, 1, traits_of(costs));
  const std::vector<int> ranks = kinds.ranks();
  const bool spare = std::all_of(plan.rows.begin() + std::ssize(ranks), plan.rows.end(),
                                 [](const std::vector<Action>& row) { return row.empty(); });
  const std::optional<Plan> one = kinds.gather(plan);
  if (kinds.all_differ() || !spare || !one) return simulate(plan, layout, costs);
  const Costs own = costs_of(kinds, ranks, costs);
  const Timeline timeline = simulate(*one, kinds.layout(), own);
  const std::vector<double> until = computed_until(*one, timeline, own);
  Timeline result;
  std::vector<double> met;
  for (const int rank : ranks) {
    met.push_back(until[at(rank)]);
    result.compute.push_back(timeline.compute[at(rank)]);
    result.peak_activations.push_back(timeline.peak_activations[at(rank)]);
    result.peak_activation_bytes.push_back(timeline.peak_activation_bytes[at(rank)]);
  }
  result.makespan = step_end(plan, met, costs);
  result.compute.resize(plan.rows.size());
  result.peak_activations.resize(plan.rows.size());
  result.peak_activation_bytes.resize(plan.rows.size());
  add_idle(result, plan, costs);
  return result;
}

}  // namespace concertina
