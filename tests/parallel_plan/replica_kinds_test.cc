// Replicas that are alike are planned and simulated once: with the same plan and figures as if each
// was, and with work that does not grow with their number.
#include "parallel/plan/replica_kinds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "core/index.h"
#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/own_figures.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// make_plan() without kinds.
Plan plan_of_whole(const Layout& layout, std::string_view name, const Limits& due, bool overlap) {
  return run_passes(named_schedule(layout, name), layout, due, overlap);
}

/// dp replicas of p ranks, where `leaves` may not divide evenly.
Layout replicas(const Entry<Schedule>& schedule, int p, int dp, int leaves, int leaf) {
  const Folding folding = folding_of(schedule, 0);
  std::vector<UnitRange> units;
  for (int s = 0; s < p * folding.chunks; ++s) units.push_back({s, s + 1});
  return make_layout(units, {p, dp}, leaves * leaf, leaves, folding);
}

/// `layout` after a replica of another depth, with ranks, microbatches and units of its own.
Layout with_another_depth(Layout layout, int leaf) {
  const int units = layout.unit_count();
  for (Pipeline& pipeline : layout.pipelines) {
    pipeline.first_microbatch += leaf;
    pipeline.last_microbatch += leaf;
    for (StagePlacement& stage : pipeline.stages) ++stage.rank;
  }
  layout.pipelines.insert(layout.pipelines.begin(), Pipeline{{{0, 0, units}}, 0, leaf});
  return layout;
}

template <class See>
void each_layout(const See& see) {
  for (const Entry<Schedule>& schedule : schedules())
    for (const int p : {2, 4})
      for (const int dp : {1, 3, 5})
        for (const int leaf : {1, 2})
          for (const int leaves : {2 * dp, 2 * dp + 3}) {
            SCOPED_TRACE(
                fmt::format("{} pp={} dp={} {} leaves of {}", schedule.name, p, dp, leaves, leaf));
            Layout layout = replicas(schedule, p, dp, leaves, leaf);
            for (const int frozen : {0, 1}) {
              layout.frozen_units = frozen;
              see(schedule.name, layout, leaf);
            }
            if (schedule.value.any_layout)
              see(schedule.name, with_another_depth(layout, leaf), leaf);
          }
}

TEST(ReplicaKinds, HaveThePlanOfTheWholeLayout) {
  each_layout([](std::string_view name, const Layout& layout, int leaf) {
    const Limits due{.leaf_microbatches = leaf};
    for (const bool overlap : {false, true}) {
      std::optional<Plan> whole;
      try {
        whole = plan_of_whole(layout, name, due, overlap);
      } catch (const Error& error) {
        const Error same = thrown_by([&] { make_plan(layout, name, due, overlap); });
        EXPECT_EQ(same.message(), error.message());
        continue;
      }
      EXPECT_EQ(make_plan(layout, name, due, overlap), *whole);
    }
  });
}

/// Costs of ranks that may differ, in steps that may tie.
Costs random_costs(const Layout& layout, int ranks, bool unequal, std::mt19937& random) {
  const auto draw = [&](int most) { return static_cast<double>(random() % at(most)) / 8; };
  Costs costs = unit_costs(layout);
  costs.local = {.latency = draw(3), .receive_cpu = draw(2)};
  costs.boundary_bytes = draw(4);
  costs.post = draw(2);
  costs.ranks.resize(at(ranks));
  std::size_t stage = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& at : pipeline.stages) {
      const double factor = unequal ? 1 + draw(4) : 1;
      costs.stages[stage++] = {.forward = factor * 0.7,
                               .input = factor * (1 + at.first_unit),
                               .weight = factor,
                               .saved_bytes = static_cast<std::size_t>(at.last_unit),
                               .units = at.last_unit - at.first_unit};
      costs.ranks[at.rank] = {
          .load = factor * 0.3, .norm = draw(5), .update = draw(5), .refresh = draw(5)};
    }
  return costs;
}

TEST(ReplicaKinds, HaveTheFiguresOfTheWholeLayout) {
  std::mt19937 random(1);
  each_layout([&](std::string_view name, const Layout& layout, int leaf) {
    Plan plan;
    try {
      plan = make_plan(layout, name, {.leaf_microbatches = leaf});
    } catch (const Error&) {
      return;
    }
    plan.rows.emplace_back();  // a spare rank
    const int ranks = static_cast<int>(plan.rows.size());
    for (const bool unequal : {false, true}) {
      const Costs costs = random_costs(layout, ranks, unequal, random);
      const Timeline whole = simulate(plan, layout, costs);
      const Timeline figures = simulate_figures(plan, layout, costs);
      EXPECT_EQ(figures.makespan, whole.makespan);
      EXPECT_EQ(figures.compute, whole.compute);
      EXPECT_EQ(figures.busy, whole.busy);
      EXPECT_EQ(figures.bubble, whole.bubble);
      EXPECT_EQ(figures.mean_bubble, whole.mean_bubble);
      EXPECT_EQ(figures.peak_activations, whole.peak_activations);
      EXPECT_EQ(figures.peak_activation_bytes, whole.peak_activation_bytes);
    }
  });
}

TEST(ReplicaKinds, AreSeparateWhereActionsOrRanksDiffer) {
  const Layout layout = make_layout({{0, 1}, {1, 2}}, {2, 3}, 12, 12);
  Plan plan = make_plan(layout, "gpipe", {.transfers = false});
  const ReplicaKinds kinds(layout);
  EXPECT_EQ(kinds.layout().pipelines.size(), 1U);
  ASSERT_TRUE(kinds.gather(plan));
  std::swap(plan.rows[4][0], plan.rows[4][1]);
  EXPECT_FALSE(kinds.gather(plan));
  EXPECT_FALSE(ReplicaKinds(make_layout({{0, 1}, {1, 2}}, {2, 2}, 5, 5)).layout().pipelines.size() <
               2);
  Layout mixed = layout;  // the ranks of the first two replicas are not apart
  std::swap(mixed.pipelines[0].stages[0].rank, mixed.pipelines[1].stages[1].rank);
  EXPECT_EQ(ReplicaKinds(mixed).layout().pipelines.size(), 3U);
}

/// What is planned, proven and simulated does not grow with the replicas; the plan itself does.
TEST(ReplicaKinds, AreAsManyForAnyNumberOfReplicas) {
  for (const int dp : {16, 256, 2048}) {
    const Layout layout = make_layout({{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {4, dp}, 8 * dp, dp);
    EXPECT_EQ(ReplicaKinds(layout, 8).layout().pipelines.size(), 1U) << dp;
    // Three leaves for two replicas.
    const Layout uneven = make_layout({{0, 1}, {1, 2}}, {2, dp}, dp / 2 * 12, dp / 2 * 3);
    EXPECT_LE(ReplicaKinds(uneven, 4).layout().pipelines.size(), 2U) << dp;
  }
}

TEST(ReplicaKinds, PlanAndSimulateManyRanksInASecond) {
  constexpr int kStages = 16, kReplicas = 1024, kMicrobatches = 32;
  std::vector<UnitRange> units;
  for (int s = 0; s < kStages; ++s) units.push_back({s, s + 1});
  const Layout layout =
      make_layout(units, {kStages, kReplicas}, kReplicas * kMicrobatches, kReplicas);
  const double start = cpu_seconds();
  const Plan plan = make_plan(layout, "1f1b", {.leaf_microbatches = kMicrobatches});
  const Timeline figures = simulate_figures(plan, layout, unit_costs(layout));
  const double seconds = cpu_seconds() - start;
  EXPECT_DOUBLE_EQ(figures.makespan, 3.0 * (kMicrobatches + kStages - 1));
  std::printf("%d ranks in %.3f s\n", kStages * kReplicas, seconds);
  if (!kOptimised) GTEST_SKIP() << "no bounds for builds that are not optimised";
  EXPECT_LT(seconds, 1);
}

}  // namespace
}  // namespace concertina
