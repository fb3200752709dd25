// Ranks that share cores: what can be worked out by hand, and bounds that hold for every schedule.
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
      << "an uneven one";
}

TEST(SharedCores, APipelineOnOneCoreDoesOneThingAtATime) {
  const Layout layout = straight(3, 4);
  const Plan plan = compute_plan(layout, "1f1b");
  const Costs costs = unit_costs(layout);
  // 3 stages x 4 microbatches x (F + I + W) one after the other, against 6 x 3 with three cores.
  EXPECT_DOUBLE_EQ(
      shared_core_factor(plan, layout, costs, {}, 1) * simulate(plan, layout, costs).makespan, 36);
}

TEST(SharedCores, MessagesAreWorkOfBothRanks) {
  const Layout layout = straight(2, 4);
  const Plan plan = compute_plan(layout, "1f1b");
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 10;
  costs.post = 0.5;
  costs.local.send_cpu = 0.01;
  costs.local.receive_cpu = 0.02;
  // On one core 2 x 4 x (F + I + W) and 8 messages of 0.6 to send and 0.7 to receive: 34.4. With
  // two, rank 1 waits 1.6 for the first, the rest takes turns, and the last gradient ends at 21.5.
  EXPECT_DOUBLE_EQ(shared_core_factor(plan, layout, costs, {}, 1), 34.4 / 21.5);
}

TEST(SharedCores, TheUpdateSharesThemAsWell) {
  const Layout layout = make_layout({{0, 1}}, {1, 2}, 2, 2);
  const Plan plan = compute_plan(layout, "1f1b");
  Costs costs = unit_costs(layout);
  costs.ranks = {{.update = 3}, {.update = 1}};
  // 3 of compute and 3 of the longer update; on one core 6 and 4.
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
