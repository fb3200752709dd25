// Idle time by cause, for steps with known causes.
#include "parallel/simulate/idle_causes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/synthetic_trace.h"

namespace concertina {
namespace {

Costs uniform(const Layout& layout, double forward, double backward) {
  Costs costs = unit_costs(layout);
  for (StageCosts& stage : costs.stages) stage = {forward, backward, 0, 0, 0};
  return costs;
}

std::vector<IdleCauses> causes_of(const Layout& layout, const std::string& schedule,
                                  const Costs& costs) {
  const RunTrace trace = synthetic_trace(layout, schedule, costs, 1);
  const std::vector<IdleCauses> causes =
      idle_causes(trace.plan, layout, trace.steps[0], expected_idle(trace.plan, layout, costs));
  const Timeline timeline = simulate(trace.plan, layout, costs);
  for (std::size_t rank = 0; rank < causes.size(); ++rank)
    EXPECT_NEAR(causes[rank].total(), timeline.makespan - timeline.busy[rank], 1e-9)
        << "the causes of rank " << rank << " do not add up to its idle time";
  return causes;
}

double sum(const std::vector<IdleCauses>& causes, Cause cause) {
  double seconds = 0;
  for (const IdleCauses& rank : causes) seconds += rank[cause];
  return seconds;
}

TEST(IdleCauses, EqualStagesIdleByScheduleAlone) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const auto causes =
        causes_of(grid_layout(4, 1, 8), schedule, uniform(grid_layout(4, 1, 8), 1, 2));
    for (const IdleCauses& rank : causes) {
      EXPECT_NEAR(rank[Cause::schedule], 3 * 3.0, 1e-9) << schedule;  // (p - 1) (F + B)
      EXPECT_NEAR(rank.total(), rank[Cause::schedule], 1e-9) << schedule;
    }
  }
}

TEST(IdleCauses, ASlowStageIsImbalanceToTheOthers) {
  const Layout layout = grid_layout(2, 1, 16);
  Costs costs = uniform(layout, 1, 2);
  costs.stages[1] = {2, 4, 0, 0, 0};
  const auto causes = causes_of(layout, "1f1b", costs);
  EXPECT_GT(causes[0][Cause::imbalance], 15);  // of the other rank's extra 48 seconds
  EXPECT_EQ(causes[1][Cause::imbalance], 0);
  EXPECT_NEAR(sum(causes, Cause::transfer), 0, 1e-9);
}

TEST(IdleCauses, LatencyIsTransfer) {
  const Layout layout = grid_layout(2, 1, 8);
  Costs costs = uniform(layout, 1, 2);
  const double before = sum(causes_of(layout, "gpipe", costs), Cause::schedule);
  costs.local.latency = 0.25;
  const auto causes = causes_of(layout, "gpipe", costs);
  EXPECT_GT(sum(causes, Cause::transfer), 0.25);
  EXPECT_LE(sum(causes, Cause::schedule), before + 1e-9);
  EXPECT_NEAR(sum(causes, Cause::imbalance), 0, 1e-9);
}

TEST(IdleCauses, AddUpForAnyCosts) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> cost(0.1, 3);
  for (int round = 0; round < 60; ++round) {
    const Layout layout = grid_layout(1 + round % 4, 1 + round % 2, 8);
    Costs costs = uniform(layout, 1, 2);
    for (StageCosts& stage : costs.stages) stage = {cost(random), cost(random), cost(random), 0, 0};
    costs.local.latency = round % 3 == 0 ? 0 : cost(random);
    costs.post = 0.01;
    for (int r = 0; r < 4 * 2; ++r) costs.ranks.push_back({0.2, 0.1, 0.3, 0.1});
    costs.ranks.resize(static_cast<std::size_t>(rank_count(layout)));
    for (const IdleCauses& rank : causes_of(layout, round % 5 == 0 ? "gpipe" : "1f1b", costs))
      for (const double seconds : rank.by_cause) EXPECT_GE(seconds, -1e-9);
  }
}

TEST(BusySeconds, SharedSpansAndWaitsInsideCountOnce) {
  const std::vector<Action> row{{Kind::F, 0, 0}, {Kind::B, 0, 1}, {Kind::STEP, -1, -1}};
  const StepRecord record{.step = 1,
                          .start = 0,
                          .end = 10,
                          .actions = {{1, 5, 4}, {2, 6, 4}, {7, 10, 3}},
                          .waits = {{WaitFor::send, {Kind::SEND_F, 0, 0}, 4.5, 5.5},
                                    {WaitFor::receive, {Kind::RECV_B, 0, 1}, 6, 7},
                                    {WaitFor::ranks, {Kind::STEP, -1, -1}, 8, 9}},
                          .completions = {},
                          .memory = {}};
  EXPECT_DOUBLE_EQ(busy_seconds(row, record), 5 - 1 + 3 - 1);
}

}  // namespace
}  // namespace concertina
