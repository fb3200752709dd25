// The simulator: figures that can be worked out by hand.
#include "parallel/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/passes.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

TEST(Simulate, TransfersTakeLatencyAndBandwidth) {
  const Layout layout = straight(2, 1);
  Costs costs = unit_costs(layout);
  costs.latency = 0.5;
  costs.boundary_bytes = 100;
  costs.bandwidth = 200;
  for (const bool transfers : {true, false}) {
    const Plan plan = make_plan(layout, "1f1b", {.transfers = transfers, .reduction = false});
    const Timeline timeline = simulate(plan, layout, costs);
    EXPECT_DOUBLE_EQ(timeline.makespan, 1 + 1 + 1 + 2 + 1 + 2);  // F, send, F, B, send, B
    EXPECT_DOUBLE_EQ(timeline.bubble[0], 1 - 3.0 / 8);
  }
}

TEST(Simulate, MessagesOfAChannelShareItsBandwidth) {
  // Four forwards of 1 s each; the link needs 3 s a message.
  const Layout layout = straight(2, 4);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 3;
  costs.bandwidth = 1;
  const Plan plan = make_plan(layout, "gpipe", {.reduction = false});
  const Timeline timeline = simulate(plan, layout, costs);
  // the last microbatch arrives after 1 + 4 x 3, its gradients leave behind F and 4 B of 2 s
  const auto forward = std::find(plan.rows[1].begin(), plan.rows[1].end(), Action{Kind::F, 1, 3});
  EXPECT_DOUBLE_EQ(timeline.rows[1][forward - plan.rows[1].begin()].start, 13);
}

TEST(Simulate, CostsDifferByStageAndKind) {
  const Layout layout = straight(2, 3);
  Costs costs = unit_costs(layout);
  costs.stages = {{.forward = 1, .input = 2, .weight = 3}, {.forward = 4, .input = 5, .weight = 6}};
  const Timeline timeline = simulate(make_plan(layout, "1f1b"), layout, costs);
  EXPECT_DOUBLE_EQ(timeline.busy[0], 3 * 6);
  EXPECT_DOUBLE_EQ(timeline.busy[1], 3 * 15);
  EXPECT_DOUBLE_EQ(timeline.makespan, 1 + 3 * 15 + 5);  // the slow stage never waits
  EXPECT_DOUBLE_EQ(timeline.mean_bubble, (timeline.bubble[0] + timeline.bubble[1]) / 2);
}

TEST(Simulate, ActionsOfARowDoNotOverlap) {
  for (const auto& [name, layout] : odd_layouts()) {
    const Plan plan = make_plan(layout, "1f1b");
    Costs costs = unit_costs(layout);
    costs.latency = 0.25;
    for (const auto& row : simulate(plan, layout, costs).rows) {
      double now = 0;
      for (const Interval& interval : row) {
        EXPECT_GE(interval.start, now);
        EXPECT_GE(interval.end, interval.start);
        now = interval.end;
      }
    }
  }
}

TEST(Simulate, ReductionOverlapsAndStepWaitsForAll) {
  const Layout layout = two_and_one();
  Costs costs = unit_costs(layout);
  for (StageCosts& stage : costs.stages) stage.reduce = 4;
  costs.step = 2;
  const Timeline timeline = simulate(make_plan(layout, "1f1b"), layout, costs);
  // stage 1 (rank 1) ends at 13, stage 0 at 15; rank 2 at 6, but shares its units with both
  EXPECT_DOUBLE_EQ((timeline.rows[1].end() - 2)->end, 13 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[0].end() - 2)->end, 15 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[2].end() - 2)->end, 15 + 4);
  for (const auto& row : timeline.rows) {
    EXPECT_DOUBLE_EQ(row.back().start, 19);
    EXPECT_DOUBLE_EQ(row.back().end, 21);
  }
  EXPECT_DOUBLE_EQ(timeline.makespan, 21);
  EXPECT_DOUBLE_EQ(timeline.busy[2], 2 * 3 + 2);
}

TEST(Simulate, CountsActivationsInBytes) {
  const Layout layout = over({0, 1, 0}, 4);
  Costs costs = unit_costs(layout);
  costs.stages[0].saved_bytes = 10;
  costs.stages[1].saved_bytes = 100;
  costs.stages[2].saved_bytes = 1000;
  const Timeline timeline = simulate(make_plan(layout, "gpipe"), layout, costs);
  EXPECT_EQ(timeline.peak_activations, (std::vector{8, 4}));
  EXPECT_EQ(timeline.peak_activation_bytes, (std::vector<std::size_t>{4040, 400}));
}

TEST(Simulate, RefusesAPlanThatHangs) {
  const Layout layout = opposite(2, 1);
  const Plan plan = parse_plan("3F1,0F0,0B0,3B1\n1F0,2F1,2B1,1B0\n", "text");
  EXPECT_THROW(simulate(plan, layout, unit_costs(layout)), Error);
  EXPECT_THROW(simulate(parse_plan("0F7\n", "text"), straight(1, 1), unit_costs(straight(1, 1))),
               Error);
}

}  // namespace
}  // namespace concertina
