// The bound that `bench step` compares a step with: the schedule's makespan with all computation.
#include "experiments/bench/timed_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/synthetic_trace.h"

namespace concertina {
namespace {

/// Different stages, slow messages and a step that waits for all ranks.
Costs slow_links(const Layout& layout) {
  Costs costs = unit_costs(layout);
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    costs.stages[s] = {.forward = 0.010 + 0.001 * static_cast<double>(s),
                       .input = 0.011,
                       .weight = 0.009,
                       .fused = -0.001};
  costs.local.latency = 0.02;
  costs.ranks.assign(static_cast<std::size_t>(rank_count(layout)), {.update = 0.003});
  return costs;
}

struct Bound {
  double seconds = 0;
  std::vector<double> compute;  // of each rank
};

Bound bound_of(const RunTrace& trace) {
  StageMeans means(trace.layout);
  Bound bound;
  std::vector<double> steps;
  for (std::size_t rank = 0; rank < trace.plan.rows.size(); ++rank) {
    const StepRecord& record = trace.steps[0][rank];
    StageMeans mine(trace.layout);
    mine.add(trace.plan.rows[rank], record);
    means.add(mine.values());
    steps.push_back(step_seconds(trace.plan.rows[rank], record));
    bound.compute.push_back(busy_seconds(trace.plan.rows[rank], record) - steps.back());
  }
  bound.seconds = schedule_bound(trace.plan, trace.layout, means, steps);
  return bound;
}

TEST(ScheduleBound, CountsEveryKindOfActionAndNoWait) {
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved-1f1b"}) {
    SCOPED_TRACE(schedule);
    const int chunks = schedule == std::string("interleaved-1f1b") ? 2 : 1;
    const Layout layout = grid_layout(4, 1, 8, chunks);
    Costs costs = slow_links(layout);
    const RunTrace trace = synthetic_trace(layout, schedule, costs, 1);
    const Bound bound = bound_of(trace);
    EXPECT_GT(bound.seconds, *std::max_element(bound.compute.begin(), bound.compute.end()));
    EXPECT_LT(bound.seconds, span_of(trace.steps[0]).seconds());
    costs.local.latency = 0;
    EXPECT_NEAR(bound.seconds, simulate(trace.plan, layout, costs).makespan, 1e-9);
  }
}

TEST(ScheduleBound, StepIsWithoutItsWaits) {
  const std::vector<Action> row{{Kind::F, 0, 0}, {Kind::STEP, -1, -1}};
  StepRecord record;
  record.end = 9;
  record.actions = {{0, 2, 2}, {3, 9, 6}};
  record.waits = {{WaitFor::reduction, row[1], 2, 3},
                  {WaitFor::ranks, row[1], 4, 5},
                  {WaitFor::weights, row[1], 6, 8.5}};
  EXPECT_DOUBLE_EQ(step_seconds(row, record), 6 - 1 - 2.5);
  EXPECT_DOUBLE_EQ(step_seconds({row[0]}, record), 0);
}

TEST(StageCosts, OfMeansTakeWhatTheirActionsTook) {
  for (const auto& [forward, input, weight, backward] : {std::array{1.0, 2.0, 3.0, 0.0},
                                                         {1.0, 2.0, 3.0, 4.5},
                                                         {1.0, 0.0, 0.0, 4.5},
                                                         {1.0, 0.0, 3.0, 0.0}}) {
    Costs costs;
    costs.stages = {stage_costs(forward, input, weight, backward)};
    EXPECT_DOUBLE_EQ(costs.seconds({Kind::F, 0, 0}), forward);
    EXPECT_DOUBLE_EQ(costs.seconds({Kind::I, 0, 0}), input > 0 ? input : backward);
    EXPECT_DOUBLE_EQ(costs.seconds({Kind::W, 0, 0}), weight);
    EXPECT_DOUBLE_EQ(costs.seconds({Kind::B, 0, 0}), backward > 0 ? backward : input + weight);
  }
}

}  // namespace
}  // namespace concertina
