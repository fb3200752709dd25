// Ranks that share cores: results computed by hand, and bounds for every schedule.
#include "parallel/simulate/shared_cores.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

Plan compute_plan(const Layout& layout, const std::string& schedule) {
  return make_plan(layout, schedule, {.transfers = false, .reduction = false});
}

TEST(SharedCores, ReplicasTakeTurns) {
  const Layout layout = make_layout({{0, 1}}, {1, 4}, 8, 8);
  const Plan plan = compute_plan(layout, "1f1b");
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, unit_costs(layout), {}, 2), 2);
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, unit_costs(layout), {}, 3), 4.0 / 3);
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, unit_costs(layout), {0, 0, 1, 1}, 2), 1)
      << "two hosts";
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, unit_costs(layout), {0, 0, 0, 1}, 2), 1.5)
      << "an uneven division";
}

TEST(SharedCores, APipelineOnOneCoreDoesOneThingAtATime) {
  const Layout layout = straight(3, 4);
  const Plan plan = compute_plan(layout, "1f1b");
  const Costs costs = unit_costs(layout);
  // 3 stages x 4 microbatches x (F + I + W) in sequence, while at most two ranks wait.
  const double seconds =
      shared_core_factor(plan, layout, costs, {}, 1) * simulate(plan, layout, costs).makespan;
  EXPECT_GT(seconds, 36);
  EXPECT_LT(seconds, 36 * (1 + 2 * kWaitingShare));
}

TEST(SharedCores, MessagesAreWorkOfBothRanks) {
  const Layout layout = straight(2, 4);
  const Plan plan = compute_plan(layout, "1f1b");
  Costs costs = unit_costs(layout);
  costs.stages[0].forward = 5;
  const double without = shared_core_factor(plan, layout, costs, {}, 1);
  costs.boundary_bytes = 10;
  costs.post = 2.5;
  costs.local.send_cpu = costs.local.receive_cpu = 0.05;
  // On one core, 4 x (5 + 1 + 2 x 2) and 8 messages of 3 on either side: 88. On two, rank 0's last
  // gradient ends at 57. Without messages, 40 and 29.
  const double with = shared_core_factor(plan, layout, costs, {}, 1);
  EXPECT_GE(without, 40.0 / 29);
  EXPECT_LE(without, 40.0 / 29 * (1 + kWaitingShare));
  EXPECT_GE(with, 88.0 / 57);
  EXPECT_LE(with, 88.0 / 57 * (1 + kWaitingShare));
}

TEST(SharedCores, RanksThatWaitSlowThoseThatDoNot) {
  // One microbatch: at most one of four ranks works at any time.
  const Layout layout = straight(4, 1);
  const Plan plan = compute_plan(layout, "1f1b");
  const Costs costs = unit_costs(layout);
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, 1), 1 + 3 * kWaitingShare);
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, 2), 1 + kWaitingShare);
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, 3), 1) << "one core is idle";
}

TEST(SharedCores, RanksStayOnTheirCores) {
  // Two microbatches fill a pipeline of four only in the middle: two ranks that share a core may
  // have work while the other core has none.
  const Layout layout = straight(4, 2);
  const Plan plan = compute_plan(layout, "gpipe");
  const Costs costs = unit_costs(layout);
  const double alone = simulate(plan, layout, costs).makespan;
  EXPECT_GT(shared_core_factor(plan, layout, costs, {}, 2), 4 * 2 * 3 / 2 / alone);
  EXPECT_GT(shared_core_factor(plan, layout, costs, {}, 2), 1 + kWaitingShare);
}

TEST(SharedCores, TheUpdateSharesThemAsWell) {
  const Layout layout = make_layout({{0, 1}}, {1, 2}, 2, 2);
  const Plan plan = compute_plan(layout, "1f1b");
  Costs costs = unit_costs(layout);
  costs.ranks = {{.update = 3}, {.update = 1}};
  // 3 of compute and 3 of the longer update; on one core, 6 and 4.
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, 1), 10.0 / 6);
}

TEST(SharedCores, NeverFasterThanTheWorkAllowsNorSlowerThanOneByOne) {
  for (const Entry<Schedule>& schedule : schedules())
    for (const int p : {2, 4}) {
      if (schedule.value.searched) continue;
      const Layout layout = folded(schedule, p, 8);
      const Plan plan = compute_plan(layout, std::string(schedule.name));
      Costs costs = unit_costs(layout);
      for (std::size_t s = 0; s < costs.stages.size(); ++s)
        costs.stages[s].forward = 1 + 0.1 * static_cast<double>(s);
      EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, p), 1) << schedule.name;
      double before = 1;
      for (int cores = p - 1; cores >= 1; --cores) {
        const double factor = shared_core_factor(plan, layout, costs, {}, cores);
        EXPECT_GE(factor, before - 1e-9) << schedule.name << " with " << cores;
        EXPECT_LE(factor, static_cast<double>(p) / cores + 1e-9) << schedule.name;
        before = factor;
      }
    }
}

}  // namespace
}  // namespace concertina
