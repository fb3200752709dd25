// The simulator: results that can be computed by hand.
#include "parallel/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/row_judge.h"
#include "parallel/simulate/bubble_definitions.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// Returns only compute actions, with B as I and W.
Rows i_and_w_rows(const Plan& plan) {
  Rows rows;
  for (const std::vector<Action>& row : plan.rows) {
    rows.emplace_back();
    for (const Action& action : row) {
      if (!is_compute(action.kind)) continue;
      const bool both = action.kind == Kind::B;
      rows.back().push_back({both ? Kind::I : action.kind, action.stage, action.microbatch});
      if (both) rows.back().push_back({Kind::W, action.stage, action.microbatch});
    }
  }
  return rows;
}

/// Microbatches on two stages that exchange messages of 10 bytes over `link`.
struct TwoStages {
  explicit TwoStages(const LinkCosts& link, int microbatches = 2, const char* schedule = "gpipe")
      : layout(straight(2, microbatches)),
        costs(unit_costs(layout)),
        plan(make_plan(layout, schedule, {.reduction = false})) {
    costs.boundary_bytes = 10;
    costs.local = link;
  }
  Timeline run() const { return simulate(plan, layout, costs); }
  Interval of(Kind kind, int stage, int microbatch) const {
    const auto& row = plan.rows[stage];
    const auto found = std::ranges::find(row, Action{kind, stage, microbatch});
    return run().rows[stage][found - row.begin()];
  }

  const Layout layout;
  Costs costs;
  const Plan plan;
};

TEST(Simulate, TransfersTakeLatencyAndBandwidth) {
  const Layout layout = straight(2, 1);
  Costs costs = unit_costs(layout);
  costs.local.latency = 0.5;
  costs.boundary_bytes = 100;
  costs.local.bandwidth = 200;
  for (const bool transfers : {true, false}) {
    const Plan plan = make_plan(layout, "1f1b", {.transfers = transfers, .reduction = false});
    const Timeline timeline = simulate(plan, layout, costs);
    EXPECT_DOUBLE_EQ(timeline.makespan, 1 + 1 + 1 + 2 + 1 + 2);  // F, send, F, B, send, B
    EXPECT_DOUBLE_EQ(timeline.bubble[0], 1 - 3.0 / 8);
  }
}

/// Qi et al. 2023 (arXiv 2401.10241), tables 4 and 5, two rows of the smallest model: milliseconds
/// of F, B, W and a message; bubbles of 1F1B and ZB-H1. Entered by hand, not read from the paper's
/// files; that four bubbles follow from the times to the fourth digit supports the entries.
TEST(Simulate, ALatencyAloneGivesThePublishedBubbles) {
  struct Published {
    int p, m;
    double forward, input, weight, message, one_f_one_b, zb_h1;
  };
  for (const Published& row : {Published{8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585},
                               {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242}}) {
    const Layout layout = straight(row.p, row.m);
    Costs costs = unit_costs(layout);
    for (StageCosts& stage : costs.stages)
      stage = {.forward = row.forward, .input = row.input, .weight = row.weight};
    costs.local.latency = row.message;
    for (const auto& [name, bubble] : {std::pair{"1f1b", row.one_f_one_b}, {"zb-h1", row.zb_h1}}) {
      const Plan plan = make_plan(layout, name);
      const double idle = idle_over_ideal(plan, simulate(plan, layout, costs)).span;
      EXPECT_NEAR(idle / (1 + idle), bubble, 1e-4) << name;
    }
  }
}

/// Only inputs matter: messages never wait for the receiver, for other messages or for the turn of
/// their SEND, and senders never wait for a buffer, however long messages take.
TEST(Simulate, ALatencyAloneHoldsNothingUp) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v"}) {
    SCOPED_TRACE(name);
    const Layout layout = folded(find_schedule(name), 4, 12);
    Costs costs = unit_costs(layout);
    // Of a split B, I would end before the B does.
    for (StageCosts& stage : costs.stages)
      if (name[0] != 'z') stage = {.forward = 1, .input = 2, .weight = 0};
    costs.local.latency = 0.25;
    costs.boundary_bytes = 100;
    const Plan plan = make_plan(layout, name, {.reduction = false});
    const auto by_inputs = [&] { return RowJudge(layout, costs).makespan(i_and_w_rows(plan)); };
    const double alone = simulate(plan, layout, costs).makespan;
    EXPECT_DOUBLE_EQ(alone, by_inputs());
    costs.local.eager_bytes = 100;  // as declared
    EXPECT_DOUBLE_EQ(simulate(plan, layout, costs).makespan, alone);
    costs.local.eager_bytes = 99;  // the last byte waits for a reply
    EXPECT_GT(simulate(plan, layout, costs).makespan, alone);
    costs.local = {.latency = 1, .bandwidth = 3, .send_cpu = 2};
    costs.post = 0.5;
    costs.hosts = {0, 0, 1, 1};
    costs.pairs[{0, 1}] = {.latency = 7};
    costs.take_latency_alone(40);
    EXPECT_DOUBLE_EQ(simulate(plan, layout, costs).makespan, by_inputs());
  }
}

/// Each published definition gives its paper's closed form where that applies.
TEST(Bubble, DefinitionsAreThoseOfThePapers) {
  const auto value = [](const char* name, const Plan& plan, const Timeline& timeline) {
    for (const BubbleDefinition& one : bubble_definitions())
      if (name == std::string_view(one.name)) return one.value(plan, timeline);
    ADD_FAILURE() << name;
    return 0.0;
  };
  const int p = 4, m = 8;
  for (const auto& [name, chunks] : {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved-1f1b", 2}}) {
    const Layout layout = folded(find_schedule(name), p, m);
    Costs costs = unit_costs(layout);
    for (StageCosts& stage : costs.stages) stage = {.forward = 2, .input = 3, .weight = 4};
    const Plan plan = make_plan(layout, name);
    const Timeline timeline = simulate(plan, layout, costs);
    const double idle = (p - 1.0) / (chunks * m);
    EXPECT_NEAR(value("megatron", plan, timeline), idle, 1e-12) << name;
    // The first rank starts first and ends last, so its span is the whole step.
    EXPECT_NEAR(value("zero_bubble", plan, timeline), idle / (1 + idle), 1e-12) << name;
    EXPECT_NEAR(value("idle_share", plan, timeline), idle / (1 + idle), 1e-12) << name;
  }
  // (p-1) (F + I - 2 W) is ZB-H2's bubble: 0 for F = I = W, although ranks start one after another.
  const Layout layout = straight(p, m);
  const Plan plan = make_plan(layout, "zb-h2");
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  EXPECT_NEAR(value("zero_bubble", plan, timeline), 0, 1e-12);
  EXPECT_NEAR(value("megatron", plan, timeline), (p - 1.0) / (3 * m), 1e-12);
  const Timeline empty = simulate(Plan{{{}}}, straight(1, 1), unit_costs(straight(1, 1)));
  for (const BubbleDefinition& one : bubble_definitions())
    EXPECT_EQ(one.value(Plan{{{}}}, empty), 0) << one.name;
}

TEST(Simulate, MessagesOfAChannelShareItsBandwidth) {
  // Four forwards of 1 s each; a message takes 3 s on the link: the last one arrives after 1 + 12.
  EXPECT_DOUBLE_EQ(TwoStages({.bandwidth = 10.0 / 3}, 4).of(Kind::F, 1, 3).start, 13);
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

TEST(Simulate, RanksOfAHostShareItsLink) {
  // Two pipelines 0 -> 2 and 1 -> 3; ranks 0 and 1 are on one host, 2 and 3 on another.
  const Layout layout = make_layout({{0, 1}, {1, 2}}, {2, 2}, 2, 2);
  Layout crossed = layout;
  for (Pipeline& pipeline : crossed.pipelines)
    for (StagePlacement& stage : pipeline.stages) stage.rank = stage.rank / 2 + stage.rank % 2 * 2;
  Costs costs = unit_costs(crossed);
  costs.boundary_bytes = 10;
  costs.remote.bandwidth = 10;
  const Plan plan = make_plan(crossed, "1f1b", {.reduction = false});
  EXPECT_DOUBLE_EQ(simulate(plan, crossed, costs).makespan, 6);
  costs.hosts = {0, 0, 1, 1};
  // Forwards leave at 1 and arrive at 2 and 3; gradients of 5 and 6 arrive at 6 and 7.
  EXPECT_DOUBLE_EQ(simulate(plan, crossed, costs).makespan, 7 + 2);
  costs.pairs[{0, 2}] = costs.pairs[{1, 3}] = {.latency = 4};
  EXPECT_DOUBLE_EQ(simulate(plan, crossed, costs).makespan, 1 + 4 + 3 + 1 + 1 + 2);
}

TEST(Simulate, CopiesTakeTheTimeOfTheRankThatMakesThem) {
  TwoStages two({.send_cpu = 0.05, .receive_cpu = 0.1});
  two.costs.post = 0.25;
  EXPECT_DOUBLE_EQ(two.of(Kind::SEND_F, 0, 0).end, 1.75);
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 0).start, 1.75 + 1);
}

TEST(Simulate, MessagesSlowTheComputeThatTheyPass) {
  const TwoStages two({.bandwidth = 2, .send_cpu = 0.1, .receive_cpu = 0.05});  // 0.2 and 0.1
  // The first activation is sent from 1 to 6, during the second F; the second one from 6 to 11,
  // during F of the first.
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 0, 1).end, 1 + 1 / 0.8);
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 0).end, 6 + 1 / 0.9);
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 1).end, 11 + 1);
  // B 0 ends at 14, and its gradient is sent during B 1, at rank 1's 0.8; rank 0 waits, which costs
  // nothing, then computes during the second gradient.
  EXPECT_DOUBLE_EQ(two.of(Kind::B, 1, 1).end, 14 + 2 / 0.8);
  EXPECT_DOUBLE_EQ(two.of(Kind::B, 0, 0).start, 19);
  EXPECT_DOUBLE_EQ(two.of(Kind::B, 0, 0).end, 19 + 2 / 0.9);
  EXPECT_DOUBLE_EQ(two.run().makespan, 24 + 2);
  EXPECT_DOUBLE_EQ(two.run().busy[0], 1 + 1 / 0.8 + 2 / 0.9 + 2);
}

TEST(Simulate, TheRestOfAMessageWaitsForBothToLook) {
  TwoStages two({.bandwidth = 2, .eager_bytes = 0.75});
  two.costs.stages[0].units = 4;
  two.costs.stages[1].units = 2;
  // Sent at 1, its first bytes arrive at 1.375; rank 0 checks after a quarter of its second F, at
  // 1.5, and sends the other 9.25 bytes in 4.625 s.
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 0).start, 6.125);
  // The second message's first bytes follow until 6.5; rank 1 checks after half of its F, at
  // 6.625; rank 0 waits, so it checks immediately.
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 1).start, 6.625 + 4.625);
}

TEST(Simulate, AnswersStandInLineBehindData) {
  TwoStages two({.bandwidth = 2, .eager_bytes = 0}, 2, "1f1b");
  // The second activation is sent from 7 to 12, as it is received after F from 6 to 7. The gradient
  // from 9 is answered at 9, but rank 1 notices after the activation: it is sent from 12 to 17.
  EXPECT_DOUBLE_EQ(two.of(Kind::F, 1, 1).start, 12);
  EXPECT_DOUBLE_EQ(two.of(Kind::B, 0, 0).start, 17);
  EXPECT_DOUBLE_EQ(two.run().makespan, 17 + 5 + 2);
  two.costs.local.eager_bytes = 10;  // nothing waits for a reply
  EXPECT_DOUBLE_EQ(two.run().makespan, 14 + 5 + 2);
}

/// Actions of a row do not overlap; the critical path, with its waits and messages, is as long as
/// the step.
TEST(Simulate, TheCriticalPathIsAsLongAsTheStep) {
  for (const auto& [name, layout] : odd_layouts())
    for (const bool transfers : {true, false}) {
      SCOPED_TRACE(name);
      const Plan plan = make_plan(layout, "1f1b", {.transfers = transfers, .reduction = false});
      Costs costs = unit_costs(layout);
      costs.boundary_bytes = 1;
      costs.local.bandwidth = 2;
      costs.local.latency = 0.125;
      const Timeline timeline = simulate(plan, layout, costs);
      for (const auto& row : timeline.rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
          EXPECT_GE(row[i].start, i == 0 ? 0 : row[i - 1].end);
          EXPECT_GE(row[i].end, row[i].start);
        }
      double now = 0;
      for (const PathStep& step : timeline.critical_path) {
        const Interval& interval = timeline.rows[step.rank][step.position];
        EXPECT_GE(interval.start, now);
        // Consecutive steps of the path are separated by at most one message.
        EXPECT_LE(interval.start, now + (step.wait == Wait::none ? 0 : 0.625 * 2));
        EXPECT_EQ(step.waited > 0, step.wait != Wait::none);
        now = interval.end;
      }
      EXPECT_DOUBLE_EQ(now, timeline.makespan);
    }
}

TEST(Simulate, SaysWhatTheCriticalPathWaitsFor) {
  const Layout layout = straight(2, 1);
  const Plan plan = make_plan(layout, "1f1b", {.reduction = false});
  Costs costs = unit_costs(layout);
  costs.local.latency = 1;
  std::string path;
  for (const PathStep& step : simulate(plan, layout, costs).critical_path)
    if (is_compute(plan.rows[step.rank][step.position].kind))
      path += fmt::format("{}:{}{} ", to_text(plan.rows[step.rank][step.position]),
                          step.wait == Wait::input ? "input" : "",
                          step.wait == Wait::gradient ? "gradient" : "");
  EXPECT_EQ(path, "0F0: 1F0:input 1B0: 0B0:gradient ");
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

TEST(Simulate, RefusesCostsThatAreNoFiniteNumbers) {
  const Layout layout = straight(2, 2);
  const Plan plan = make_plan(layout, "1f1b");
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Costs costs = unit_costs(layout);
    costs.stages[1].weight = bad;
    EXPECT_THROW(simulate(plan, layout, costs), Error);
    costs = unit_costs(layout);
    costs.local.latency = bad;
    EXPECT_THROW(simulate(plan, layout, costs), Error);
  }
}

}  // namespace
}  // namespace concertina
