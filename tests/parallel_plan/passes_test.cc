// The passes: what each adds, and where, on plans small enough to read.
#include "parallel/generate/passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/plan/plan_grid.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

Plan compute_plan(const Layout& layout, std::string_view name) {
  return make_plan(layout, name, {.transfers = false, .reduction = false});
}

TEST(Expand, NumbersStagesAndMicrobatchesThroughTheLayout) {
  EXPECT_EQ(to_text(compute_plan(two_and_one(), "1f1b")),
            "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
            "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"
            "2F4,2B4,2F5,2B5\n");
}

TEST(Expand, RefusesAGeneratorThatForgetsWork) {
  const Schedule forgetful{.generate = [](const PipelineShape& shape) {
    Rows rows(shape.ranks);
    for (int stage = 0; stage < shape.stages(); ++stage)
      rows[shape.stage_rank[stage]] = {{Kind::F, stage, 0}};
    return rows;
  }};
  const Error error = input_error([&] { expand(straight(2, 1), forgetful, "forgetful"); });
  expect_has(error.message(), "'forgetful'");
  expect_has(error.message(), "0B0 is missing on rank 0");
}

TEST(MergeInputWeight, MergesNeighborsOnly) {
  const Layout layout = straight(1, 2);
  const Plan merged = merge_input_weight({parse_plan("0F0,0I0,0W0,0F1,0I1,0W1\n", "text"), layout});
  EXPECT_EQ(to_text(merged), "0F0,0B0,0F1,0B1\n");
  const Plan apart = parse_plan("0F0,0F1,0I0,0I1,0W0,0W1\n", "text");
  EXPECT_EQ(merge_input_weight({apart, layout}), apart);
}

TEST(MergeInputWeight, KeepsApartWhatAnotherRankWaitsFor) {
  const Layout layout = straight(2, 1);
  const Plan split = parse_plan("0F0,0I0,0W0\n1F0,1I0,1W0\n", "text");
  EXPECT_EQ(to_text(merge_input_weight({split, layout})), "0F0,0B0\n1F0,1I0,1W0\n");
}

/// Rank 1 has its first stage's output after 2 s and its second stage's gradient after 1 + 5, so
/// the costs determine the order of its sends.
TEST(AddTransfers, OrdersByTheCostsGiven) {
  const Layout layout{
      {Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 1}, Pipeline{{{1, 0, 1}, {0, 1, 2}}, 1, 2}}};
  const Plan plan = parse_plan("0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n", "text");
  const auto first_of = [&](const Plan& with) {
    for (const Action& action : with.rows[1])
      if (action.kind == Kind::RECV_F || action.kind == Kind::SEND_F) return to_text(action);
    return std::string();
  };
  Costs costs = unit_costs(layout);
  costs.stages[2].forward = 3;
  EXPECT_EQ(first_of(add_transfers({plan, layout}, costs)), "1RECV_F0");
  costs.stages[2].forward = 0.5;
  EXPECT_EQ(first_of(add_transfers({plan, layout}, costs)), "2SEND_F1");
}

/// The order cannot deadlock even if actions take no time.
TEST(AddTransfers, TakesCostsOfNothing) {
  for (const auto& [name, layout] : odd_layouts())
    for (const char* schedule : {"1f1b", "gpipe"}) {
      const Plan plan = compute_plan(layout, schedule);
      for (const auto& [forward, input, weight] :
           {std::tuple{0.0, 0.0, 0.0}, {1.0, 0.0, 1.0}, {0.0, 1.0, 0.0}, {1e18, 1e-30, 0.0}}) {
        Costs costs = unit_costs(layout);
        for (StageCosts& stage : costs.stages)
          stage = {.forward = forward, .input = input, .weight = weight, .fused = -weight};
        const Plan with = add_transfers({plan, layout}, costs);
        const auto violation = check(with, layout, {.reduction = false});
        EXPECT_FALSE(violation) << name << " " << schedule << ": " << violation->text;
      }
    }
}

TEST(AddTransfers, PostsReceivesEarlyAndInOneOrder) {
  const Layout layout = straight(2, 3);
  EXPECT_EQ(to_text(make_plan(layout, "1f1b", {.reduction = false})),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0RECV_B2,0B1,0B2\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1RECV_F2,1B1,1SEND_B1,1F2,1B2,1SEND_B2\n");
}

TEST(AddTransfers, SendsRightAfterTheProducer) {
  for (const auto& [name, layout] : odd_layouts()) {
    for (const std::vector<Action>& row : make_plan(layout, "1f1b").rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!is_send(row[i].kind)) continue;
        std::size_t producer = i;
        while (is_transfer(row[producer].kind)) --producer;
        EXPECT_EQ(row[producer].stage, row[i].stage);
        EXPECT_EQ(row[producer].microbatch, row[i].microbatch);
      }
    }
  }
}

/// Returns the number of compute actions between a RECV and its consumer.
int lead(const std::vector<Action>& row, std::size_t receive) {
  const Kind consumer = row[receive].kind == Kind::RECV_F ? Kind::F : Kind::B;
  int actions = 0;
  for (std::size_t i = receive + 1; i < row.size(); ++i) {
    if (row[i] == Action{consumer, row[receive].stage, row[receive].microbatch}) return actions;
    actions += is_compute(row[i].kind) ? 1 : 0;
  }
  return -1;
}

TEST(AddTransfers, HalfOfTheReceivesOverlapWithAnAction) {
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    int receives = 0, early = 0;
    for (const std::vector<Action>& row : make_plan(straight(4, 32), name).rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!is_transfer(row[i].kind) || is_send(row[i].kind)) continue;
        ++receives;
        EXPECT_GE(lead(row, i), 0);
        early += lead(row, i) > 0 ? 1 : 0;
      }
    }
    EXPECT_GE(early, receives / 2) << name;
  }
}

TEST(AddReduction, EndsEachRow) {
  const Layout layout = over({0, 1, 1, 0}, 2);
  const Plan plan = make_plan(layout, "gpipe");
  const auto tail = [&](int rank) {
    const std::vector<Action>& row = plan.rows[rank];
    return to_text(Plan{{{row.end() - 3, row.end()}}});
  };
  EXPECT_EQ(tail(0), "3REDUCE_GRAD,0REDUCE_GRAD,STEP\n");
  EXPECT_EQ(tail(1), "2REDUCE_GRAD,1REDUCE_GRAD,STEP\n");
}

TEST(MakePlan, NamesTheSchedulesThatExist) {
  const Error error = input_error([&] { make_plan(straight(2, 2), "1f2b"); });
  EXPECT_EQ(error.fix(), fmt::format("1f1b (one of: {})", fmt::join(names_of(schedules()), ", ")));
}

TEST(MakePlan, KeepsToAMemoryBound) {
  const Layout layout = straight(2, 4);
  const Limits bound{.peak_activations = {3, 3}};
  EXPECT_THROW(make_plan(layout, "gpipe", bound), RefusedPlan);
  EXPECT_THROW(run_passes({make_plan(layout, "gpipe"), "", "file"}, layout, bound), RefusedPlan);
  EXPECT_NO_THROW(make_plan(layout, "1f1b", bound));
  EXPECT_NO_THROW(run_passes({make_plan(layout, "1f1b"), "", "file"}, layout, bound));
}

TEST(MakePlan, MergedPipelinesKeepBothDirectionsBusy) {
  // Two opposite pipelines on the same ranks fill each other's bubbles (Chimera, Li & Hoefler
  // 2021): less idle time than running one after the other.
  const Layout both = opposite(4, 4);
  const Timeline timeline = simulate(make_plan(both, "1f1b"), both, unit_costs(both));
  const Layout one = straight(4, 4);
  const double alone = simulate(make_plan(one, "1f1b"), one, unit_costs(one)).makespan;
  EXPECT_LT(timeline.makespan, 2 * alone);
}

TEST(Passes, APlanBeyondTheBoundIsRefusedBeforeItIsMade) {
  for (const char* name : {"1f1b", "zb-h1"}) {
    const Error error = input_error([&] { make_plan(straight(4096, 65536), name); });
    expect_has(error.message(), "1879048192 actions");
  }
}

}  // namespace
}  // namespace concertina
