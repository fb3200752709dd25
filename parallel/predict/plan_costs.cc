#include "parallel/predict/plan_costs.h"

#include <algorithm>

#include "core/error.h"
#include "core/index.h"
#include "core/model/exchange_order.h"
#include "parallel/plan/local_shares.h"

namespace concertina {
namespace {

/// The data that a stage saves, as laid out by ModelStage: that of each unit that trains, and the
/// edges around it within the stage.
std::size_t saved_bytes(const Job& job, const Assignment& assignment, const StagePlacement& stage) {
  const std::size_t edge = align_up(job.model.boundary_bytes);
  std::size_t bytes = 0;
  for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
    bytes += align_up(assignment.costs[at(unit)].saved_bytes) +
             (unit + 1 < stage.last_unit && unit + 1 >= assignment.layout.frozen_units ? edge : 0);
  return bytes;
}

/// `factor` is the factor of the stage's rank.
StageCosts stage_costs(const Job& job, const Assignment& assignment, const StagePlacement& stage,
                       const std::vector<UnitSeconds>& units, double factor) {
  StageCosts costs = stage_seconds(units, {stage.first_unit, stage.last_unit}, factor);
  costs.saved_bytes = saved_bytes(job, assignment, stage);
  costs.units = stage.last_unit - stage.first_unit;
  return costs;
}

/// Seconds from the end of `use`'s gradient to the end of the stage's last action: the gradients of
/// the units below still follow.
double seconds_below(const Assignment& assignment, int stage, const StagePlacement& placement,
                     int use, const std::vector<UnitSeconds>& units) {
  const std::vector<Action>& row = assignment.plan.rows[at(placement.rank)];
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Action& action) {
    return action.stage == stage && makes_weight_gradient(action.kind);
  });
  const bool both = last != row.rend() && last->kind == Kind::B;
  double seconds = 0;
  for (int unit = placement.first_unit; unit < use; ++unit)
    seconds += units[at(unit)].weight + (both ? units[at(unit)].input : 0);
  return seconds;
}

BucketCosts bucket_costs(const Assignment& assignment, const std::vector<StagePlacement>& stages,
                         std::size_t b, const std::vector<UnitSeconds>& units,
                         const MachineModel& machine, LocalShares& shares) {
  const Bucket& bucket = assignment.buckets[b];
  BucketCosts costs;
  costs.ranks = assignment.owners[b].ranks;
  costs.number = static_cast<int>(b);
  costs.bytes = static_cast<double>(bucket.elements * sizeof(float));
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const StagePlacement& stage = stages[at(s)];
    const auto use = std::find_if(bucket.uses.begin(), bucket.uses.end(), [&](int unit) {
      return stage.first_unit <= unit && unit < stage.last_unit;
    });
    if (use == bucket.uses.end()) continue;
    costs.stages.push_back(s);
    costs.early.push_back(rank_factor(machine, stage.rank) *
                          seconds_below(assignment, s, stage, *use, units));
  }
  costs.pieces = shares.of(bucket, costs.ranks);
  return costs;
}

/// Adds the time that norms and updates take, and when the update of each bucket's part ends.
void add_update(const Assignment& assignment, const MachineModel& machine, Costs& costs,
                const std::vector<int>& shared) {
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    if (assignment.buckets[b].frozen) continue;
    for (std::size_t i = 0; i < assignment.owners[b].ranks.size(); ++i) {
      const int number = assignment.owners[b].ranks[i];
      const double factor = rank_factor(machine, number);
      RankCosts& rank = costs.ranks[at(number)];
      const Part& part = assignment.owners[b].parts[i];
      rank.norm += factor * static_cast<double>(part.count()) * machine.norm_s_per_element;
      rank.update += factor * part.cost * update_seconds(machine);
      if (shared[b] >= 0) costs.buckets[at(shared[b])].updated.push_back(rank.update);
    }
  }
}

}  // namespace

StageCosts stage_seconds(const std::vector<UnitSeconds>& units, UnitRange stage, double factor) {
  StageCosts costs{.forward = 0, .input = 0, .weight = 0};
  for (int unit = stage.first; unit < stage.last; ++unit) {
    costs.forward += factor * units[at(unit)].forward;
    costs.input += factor * units[at(unit)].input;
    costs.weight += factor * units[at(unit)].weight;
  }
  return costs;
}

Costs plan_costs(const Job& job, const Assignment& assignment,
                 const std::vector<UnitSeconds>& units, const MachineModel& machine) {
  const ModelSpec& model = job.model;
  CONCERTINA_CHECK(units.size() == model.units.size(), "seconds for {} units, but the model has {}",
                   units.size(), model.units.size());
  Costs costs;
  costs.boundary_bytes = static_cast<double>(model.boundary_bytes);
  costs.combine = machine.combine_s_per_byte;
  costs.exchange_scheme = assignment.exchange.scheme;
  costs.leaves = assignment.leaves(job);
  add_links(machine, assignment.world, costs);
  costs.ranks.resize(at(assignment.world));
  for (const Pipeline& pipeline : assignment.layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) {
      const double factor = rank_factor(machine, stage.rank);
      costs.stages.push_back(stage_costs(job, assignment, stage, units, factor));
      RankCosts& rank = costs.ranks[at(stage.rank)];
      if (&stage == &pipeline.stages.front() || &stage == &pipeline.stages.back())
        rank.load = factor * machine.load_s;
      for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
        rank.refresh += factor * units[at(unit)].pack;
    }
  const std::vector<StagePlacement> stages = assignment.layout.stages();
  const bool free = !has_links(machine) && machine.combine_s_per_byte == 0;
  LocalShares shares(job, assignment);
  std::vector<int> shared(assignment.buckets.size(), -1);
  for (const std::size_t b : exchange_order(assignment.buckets)) {
    if (free || assignment.owners[b].ranks.size() == 1 || assignment.buckets[b].frozen) continue;
    shared[b] = static_cast<int>(costs.buckets.size());
    costs.buckets.push_back(bucket_costs(assignment, stages, b, units, machine, shares));
  }
  add_update(assignment, machine, costs, shared);
  return costs;
}

}  // namespace concertina
