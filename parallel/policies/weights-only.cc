// After TimelyFreeze (2602.05754, 2026): all layers train, but in each step some units skip their
// weight gradients to minimize the duration of the step. Their number per stage follows from the
// initial assignment by the linear program in weight_skips.h. Costs are FLOPs, because measured
// times must not influence what is trained. The paper freezes individual parameters and measures
// times in a first phase; here, the units of each stage take turns (skip_plan.h).
#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "parallel/policies/freeze_policy.h"
#include "parallel/policies/weight_skips.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

constexpr double kRounding = 1e-9;  // for fractions without an exact binary form

Costs flop_costs(const Layout& layout, const std::vector<UnitCost>& units) {
  Costs costs = unit_costs(layout);
  for (int s = 0; s < layout.stage_count(); ++s) {
    StageCosts& stage = costs.stages[at(s)] = {.forward = 0, .input = 0, .weight = 0};
    for (int u = layout.stage(s).first_unit; u < layout.stage(s).last_unit; ++u) {
      stage.forward += units[at(u)].forward_flops;
      stage.input += units[at(u)].input_flops;
      stage.weight += units[at(u)].weight_flops;
    }
  }
  return costs;
}

/// The units in all stages of a group, and how many FLOPs of W can be skipped.
struct SkipStage {
  std::vector<int> units;  // units that can skip
  double all = 0, able = 0;
  double able_share() const { return all > 0 ? able / all : 0; }
};

std::vector<SkipStage> skip_stages(const Job& job, const Assignment& assignment,
                                   const std::vector<int>& groups) {
  const Layout& layout = assignment.layout;
  std::vector<int> group_of(at(job.units()));  // by unit
  for (int s = 0; s < layout.stage_count(); ++s)
    for (int u = layout.stage(s).first_unit; u < layout.stage(s).last_unit; ++u)
      group_of[at(u)] = groups[at(s)];
  std::vector<SkipStage> stages(at(*std::ranges::max_element(groups)) + 1);
  const std::vector<Bucket> buckets = make_buckets(job.model, layout.frozen_units);
  for (int u = 0; u < job.units(); ++u) {
    SkipStage& stage = stages[at(group_of[at(u)])];
    stage.all += assignment.costs[at(u)].weight_flops;
    const int bucket = skipped_bucket(job.model, buckets, u);
    if (bucket < 0 || buckets[at(bucket)].frozen) continue;
    stage.able += assignment.costs[at(u)].weight_flops;
    stage.units.push_back(u);
  }
  return stages;
}

/// Rounds to whole units such that each unit trains in some steps.
int whole_units(double share, double most, std::size_t units) {
  const auto count = static_cast<double>(units);
  return static_cast<int>(
      std::min(std::round(share * count), std::floor(most * count + kRounding)));
}

SkipPlan plan_skips(const Job& job, const Assignment& assignment, const OptionValues& options) {
  const Layout& layout = assignment.layout;
  const double most = option<double>(options, "most_skipped");
  const std::vector<int> groups = stage_groups(layout);
  const std::vector<SkipStage> stages = skip_stages(job, assignment, groups);
  Costs costs = flop_costs(layout, assignment.costs);
  std::vector<double> bound;  // by stage of the layout, as a share of all its W
  for (const int group : groups) bound.push_back(most * stages[at(group)].able_share());
  const WeightSkips skips = skip_weights(assignment.plan, layout, costs, bound);
  SkipPlan plan;
  for (const SkipStage& stage : stages) plan.groups.push_back({.units = stage.units});
  for (std::size_t s = 0; s < groups.size(); ++s) {
    SkipGroup& group = plan.groups[at(groups[s])];
    const double able = stages[at(groups[s])].able_share();
    if (able > 0) group.skipped = whole_units(skips.share[s] / able, most, group.units.size());
    if (group.skipped > 0)
      costs.stages[s].weight *= 1 - able * group.skipped / static_cast<double>(group.units.size());
  }
  if (!(skips.before > 0)) return plan;
  plan.step_ratio = simulate(assignment.plan, layout, costs).makespan / skips.before;
  plan.best_ratio = skips.after / skips.before;
  return plan;
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const auto from = option<std::int64_t>(options, "skip_from");
  FreezeDecision decision{.frozen = view.now().frozen, .statistic = view.skips->step_ratio};
  int units = 0, skipped = 0;
  for (const SkipGroup& group : view.skips->groups) {
    units += static_cast<int>(std::ssize(group.units));
    skipped += group.skipped;
  }
  decision.skips = skipped > 0 && view.now().step >= from;
  decision.reason = view.now().step < from
                        ? fmt::format("no weight gradient is skipped before step {}", from)
                        : fmt::format(
                              "{} of {} units skip their weight gradients in each step, in turn: "
                              "by FLOPs, a step takes {:.3g} times as long",
                              skipped, units, view.skips->step_ratio);
  return decision;
}

}  // namespace

FreezePolicy policy_weights_only() {
  return {.decide = decide,
          .options = {{"most_skipped", 0.5,
                       "maximum fraction of a stage's weight gradients to skip", 0, 0.99},
                      {"skip_from", std::int64_t{0},
                       "steps before the first decision that skips weight gradients", 0, 1e9}},
          .keys = {"freeze.every"},
          .plan_skips = plan_skips,
          .about =
              "no layers; skips weight gradients in turn to minimize the duration of a step "
              "(after TimelyFreeze, 2026)"};
}

}  // namespace concertina
