// The simulator: figures that can be worked out by hand.
#include "parallel/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/row_judge.h"
#include "parallel/simulate/bubble_definitions.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// Compute actions alone, B as I and W.
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
/// of F, B, W and a message; bubbles of 1F1B and ZB-H1. Entered by hand, not
/// read from the paper's files: what speaks for the entries is that four bubbles follow from the
/// times to the fourth digit.
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

/// By each action's inputs alone: no message waits for its receiver, for another message or its
/// SEND's turn, and no sender for a buffer, however long messages take.
TEST(Simulate, ALatencyAloneHoldsNothingUp) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v"}) {
    SCOPED_TRACE(name);
    const Layout layout = folded(find_schedule(name), 4, 12);
    Costs costs = unit_costs(layout);
    // The I of a B that is split would end before the B does.
    for (StageCosts& stage : costs.stages)
      if (name[0] != 'z') stage = {.forward = 1, .input = 2, .weight = 0};
    costs.local.latency = 0.25;
    costs.boundary_bytes = 100;
    const Plan plan = make_plan(layout, name, {.reduction = false});
    const auto by_inputs = [&] { return RowJudge(layout, costs).makespan(i_and_w_rows(plan)); };
    const double alone = simulate(plan, layout, costs).makespan;
    EXPECT_DOUBLE_EQ(alone, by_inputs());
    costs.local.eager_bytes = 100;  // says it
    EXPECT_DOUBLE_EQ(simulate(plan, layout, costs).makespan, alone);
    costs.local.eager_bytes = 99;  // the last byte waits for an answer
    EXPECT_GT(simulate(plan, layout, costs).makespan, alone);
    costs.local = {.latency = 1, .bandwidth = 3, .send_cpu = 2};
    costs.post = 0.5;
    costs.hosts = {0, 0, 1, 1};
    costs.pairs[{0, 1}] = {.latency = 7};
    costs.take_latency_alone(40);
    EXPECT_DOUBLE_EQ(simulate(plan, layout, costs).makespan, by_inputs());
  }
}

/// Each published definition is its paper's closed form where that holds.
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
    // The first rank starts first and ends last: its span is the whole of it.
    EXPECT_NEAR(value("zero_bubble", plan, timeline), idle / (1 + idle), 1e-12) << name;
    EXPECT_NEAR(value("idle_share", plan, timeline), idle / (1 + idle), 1e-12) << name;
  }
  // (p-1) (F + I - 2 W) is ZB-H2's bubble: none at F = I = W, though ranks start one by one.
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
  // Four forwards of 1 s each; the link needs 3 s a message.
  const Layout layout = straight(2, 4);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 3;
  costs.local.bandwidth = 1;
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
    costs.local.latency = 0.25;
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

/// A leaf of each holder.
std::vector<Share> one_each(int holders) {
  std::vector<Share> shares;
  for (int h = 0; h < holders; ++h) shares.push_back({{0, {h, h + 1}}});
  return shares;
}

/// Bytes of gradients that stage 0 or 1 of the first pipeline shares with stage 2, the second one.
BucketCosts shared_bucket(int stage, double bytes) {
  return {.ranks = {stage, 2},
          .stages = {stage, 2},
          .early = {0, 0},
          .pieces = one_each(2),
          .updated = {0, 0},
          .bytes = bytes};
}

TEST(Simulate, ReductionOverlapsAndStepWaitsForAll) {
  const Layout layout = two_and_one();
  Costs costs = unit_costs(layout);
  costs.local.bandwidth = 1;
  costs.buckets = {shared_bucket(1, 8), shared_bucket(0, 8)};  // 4 bytes a direction
  costs.ranks.assign(3, {.norm = 0.5, .update = 1.5});
  const Timeline timeline = simulate(make_plan(layout, "1f1b"), layout, costs);
  // stage 1 (rank 1) ends at 13, stage 0 at 15; rank 2 at 6, but shares its units with both
  EXPECT_DOUBLE_EQ((timeline.rows[1].end() - 2)->end, 13 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[0].end() - 2)->end, 15 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[2].end() - 2)->end, 15 + 4);
  // ... and then 4 bytes of weights both ways
  for (const auto& row : timeline.rows) EXPECT_DOUBLE_EQ(row.back().start, 19);
  EXPECT_DOUBLE_EQ(timeline.makespan, 19.5 + 4);
  EXPECT_DOUBLE_EQ(timeline.busy[2], 2 * 3 + 0.5 + 1.5);  // waiting for weights is not work
}

TEST(Simulate, AReductionAmongComputeWaitsForNothing) {
  // Two replicas of two stages on one rank each; stage 1's REDUCE in the middle of the row, as in
  // PyTorch's files.
  Layout layout = over({0, 0}, 1);
  layout.pipelines.push_back(layout.pipelines[0]);
  layout.pipelines[1].first_microbatch = 1;
  layout.pipelines[1].last_microbatch = 2;
  for (StagePlacement& stage : layout.pipelines[1].stages) stage.rank = 1;
  Costs costs = unit_costs(layout);
  costs.local.bandwidth = 1;
  costs.buckets = {{.ranks = {0, 1},
                    .stages = {1, 3},
                    .early = {0, 0},
                    .pieces = one_each(2),
                    .updated = {0, 0},
                    .bytes = 14}};
  Plan plan = make_plan(layout, "1f1b");
  for (int rank = 0; rank < 2; ++rank)
    plan.rows[rank] = {{Kind::F, 2 * rank, rank},     {Kind::F, 2 * rank + 1, rank},
                       {Kind::B, 2 * rank + 1, rank}, {Kind::REDUCE, 2 * rank + 1, -1},
                       {Kind::B, 2 * rank, rank},     {Kind::STEP, 0, -1}};
  const Timeline timeline = simulate(plan, layout, costs);
  EXPECT_DOUBLE_EQ(timeline.rows[0][4].start, 4);
  EXPECT_DOUBLE_EQ(timeline.rows[0][5].start, 4 + 7);  // STEP waits for what left at 4
}

constexpr double kMediumBytes = 4.0 * (51.5e6 + 24 * (4.2e6 + 8.4e6));  // GPT-2 medium

/// Seconds of exchanging the gradients of GPT-2 medium (355 million parameters) between replicas of
/// one rank, `per_host` of them on each host, and of gathering the weights.
double exchange_seconds(int replicas, int per_host, const LinkCosts& link,
                        const std::string& scheme = "all-to-all") {
  const Layout layout = make_layout({{0, 1}}, {1, replicas}, replicas, replicas);
  Costs costs = unit_costs(layout);
  for (StageCosts& stage : costs.stages) stage = {.forward = 0, .input = 0, .weight = 0};
  costs.remote = link;
  costs.local.bandwidth = 12 * link.bandwidth;
  costs.leaves = replicas;
  costs.exchange_scheme = scheme;
  std::vector<int> all;
  for (int rank = 0; rank < replicas; ++rank) {
    all.push_back(rank);
    costs.hosts.push_back(rank / per_host);
  }
  const std::vector<double> zeros(all.size());
  double sum = 0;
  for (int unit = 0; unit < 49; ++unit) {
    const double parameters = unit == 0 ? 51.5e6 : unit % 2 == 0 ? 8.4e6 : 4.2e6;
    costs.buckets.push_back({.ranks = all,
                             .stages = all,
                             .early = zeros,
                             .pieces = one_each(replicas),
                             .updated = zeros,
                             .bytes = 4 * parameters,
                             .number = unit});
    sum += 4 * parameters;
  }
  EXPECT_DOUBLE_EQ(sum, kMediumBytes);
  return simulate(make_plan(layout, "1f1b"), layout, costs).makespan;
}

/// The same between hosts of one rank, over what a ring would take.
double over_a_ring(int replicas, const LinkCosts& link, const std::string& scheme) {
  const double ring = 2 * kMediumBytes * (replicas - 1) / replicas / link.bandwidth;
  return exchange_seconds(replicas, 1, link, scheme) / ring;
}

TEST(Simulate, AnExchangeOfGradientsTakesLittleMoreThanARing) {
  for (const std::string scheme : {"all-to-all", "hierarchical"})
    for (const int replicas : {2, 3, 8, 12, 16, 32, 100}) {
      EXPECT_LT(over_a_ring(replicas, {.bandwidth = 25e9}, scheme), 1.4) << replicas;
      EXPECT_LT(over_a_ring(replicas, {.latency = 5e-6, .bandwidth = 25e9}, scheme), 1.4)
          << replicas;
      EXPECT_GE(over_a_ring(replicas, {.bandwidth = 25e9}, scheme), 1 - 1e-9) << replicas;
    }
}

TEST(Simulate, AnExchangeOfAThousandReplicasTakesSeconds) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_LT(over_a_ring(1024, {.latency = 5e-6, .bandwidth = 25e9}, "all-to-all"), 1.4);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Simulate, HostsOfSeveralRanksExchangeOneSumEach) {
  // What each host has to send and receive once its ranks have added up.
  const LinkCosts link{.latency = 5e-6, .bandwidth = 25e9};
  for (const auto& [hosts, per_host] : {std::pair(2, 2), {2, 8}, {8, 8}, {16, 4}}) {
    const double bound = 2 * kMediumBytes * (hosts - 1) / hosts / link.bandwidth;
    const double direct = exchange_seconds(hosts * per_host, per_host, link),
                 hierarchical = exchange_seconds(hosts * per_host, per_host, link, "hierarchical");
    EXPECT_GT(direct, 0.99 * per_host * bound) << hosts << " x " << per_host;
    EXPECT_GT(hierarchical, 0.99 * bound) << hosts << " x " << per_host;
    EXPECT_LT(hierarchical, 1.6 * bound) << hosts << " x " << per_host;
  }
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
  // forwards leave at 1 and arrive at 2 and 3; gradients of 5 and 6 arrive at 6 and 7
  EXPECT_DOUBLE_EQ(simulate(plan, crossed, costs).makespan, 7 + 2);
  costs.pairs[{0, 2}] = costs.pairs[{1, 3}] = {.latency = 4};
  EXPECT_DOUBLE_EQ(simulate(plan, crossed, costs).makespan, 1 + 4 + 3 + 1 + 1 + 2);
}

TEST(Simulate, CopiesTakeTheTimeOfTheRankThatMakesThem) {
  const Layout layout = straight(2, 2);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 10;
  costs.post = 0.25;
  costs.local = {.send_cpu = 0.05, .receive_cpu = 0.1};
  const Plan plan = make_plan(layout, "gpipe", {.reduction = false});
  const auto end = [&](const Action& action) {
    const auto& row = plan.rows[action.stage];
    const auto found = std::find(row.begin(), row.end(), action);
    return simulate(plan, layout, costs).rows[action.stage][found - row.begin()];
  };
  EXPECT_DOUBLE_EQ(end({Kind::SEND_F, 0, 0}).end, 1.75);
  EXPECT_DOUBLE_EQ(end({Kind::F, 1, 0}).start, 1.75 + 1);
}

Interval interval_of(const Plan& plan, const Timeline& timeline, const Action& action, int rank) {
  const auto& row = plan.rows[rank];
  return timeline.rows[rank][std::find(row.begin(), row.end(), action) - row.begin()];
}

TEST(Simulate, MessagesSlowTheComputeThatTheyPass) {
  const Layout layout = straight(2, 2);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 10;
  costs.local = {.bandwidth = 2, .send_cpu = 0.1, .receive_cpu = 0.05};  // shares 0.2 and 0.1
  const Plan plan = make_plan(layout, "gpipe", {.reduction = false});
  const Timeline timeline = simulate(plan, layout, costs);
  // The first activation passes from 1 to 6, beside the second F; the second one from 6 to 11,
  // beside F of the first.
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 0, 1}, 0).end, 1 + 1 / 0.8);
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 1, 0}, 1).end, 6 + 1 / 0.9);
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 1, 1}, 1).end, 11 + 1);
  // B 0 ends at 14, its gradient passes beside B 1, at rank 1's 0.8; rank 0 waits, which costs
  // nothing, then computes beside the second gradient.
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::B, 1, 1}, 1).end, 14 + 2 / 0.8);
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::B, 0, 0}, 0).start, 19);
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::B, 0, 0}, 0).end, 19 + 2 / 0.9);
  EXPECT_DOUBLE_EQ(timeline.makespan, 24 + 2);
  EXPECT_DOUBLE_EQ(timeline.busy[0], 1 + 1 / 0.8 + 2 / 0.9 + 2);
}

TEST(Simulate, TheRestOfAMessageWaitsForBothToLook) {
  const Layout layout = straight(2, 2);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 10;
  costs.local.bandwidth = 2;
  costs.local.eager_bytes = 0.75;
  costs.stages[0].units = 4;
  costs.stages[1].units = 2;
  const Plan plan = make_plan(layout, "gpipe", {.reduction = false});
  const Timeline timeline = simulate(plan, layout, costs);
  // Sent at 1, its first bytes are there at 1.375; rank 0 looks behind a quarter of its second F,
  // at 1.5, and sends the other 9.25 bytes in 4.625 s.
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 1, 0}, 1).start, 6.125);
  // The second one's first bytes are behind them until 6.5; rank 1 looks behind half of its F, at
  // 6.625; rank 0 waits, so it looks at once.
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 1, 1}, 1).start, 6.625 + 4.625);
}

TEST(Simulate, AnswersStandInLineBehindData) {
  const Layout layout = straight(2, 2);
  Costs costs = unit_costs(layout);
  costs.boundary_bytes = 10;
  costs.local.bandwidth = 2;
  costs.local.eager_bytes = 0;
  const Plan plan = make_plan(layout, "1f1b", {.reduction = false});
  const Timeline timeline = simulate(plan, layout, costs);
  // The second activation passes from 7 to 12, as it is received behind F of 6 to 7. The gradient
  // of 9 is answered at 9, but rank 1 sees that behind the activation: it passes from 12 to 17.
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::F, 1, 1}, 1).start, 12);
  EXPECT_DOUBLE_EQ(interval_of(plan, timeline, {Kind::B, 0, 0}, 0).start, 17);
  EXPECT_DOUBLE_EQ(timeline.makespan, 17 + 5 + 2);
  costs.local.eager_bytes = 10;  // nothing waits for an answer
  EXPECT_DOUBLE_EQ(simulate(plan, layout, costs).makespan, 14 + 5 + 2);
}

/// Seconds of waiting on the path and of what it leads over are the whole step.
TEST(Simulate, TheCriticalPathIsAsLongAsTheStep) {
  for (const auto& [name, layout] : odd_layouts()) {
    for (const bool transfers : {true, false}) {
      SCOPED_TRACE(name);
      const Plan plan = make_plan(layout, "1f1b", {.transfers = transfers, .reduction = false});
      Costs costs = unit_costs(layout);
      costs.boundary_bytes = 1;
      costs.local.bandwidth = 2;
      costs.local.latency = 0.125;
      const Timeline timeline = simulate(plan, layout, costs);
      double now = 0;
      for (const PathStep& step : timeline.critical_path) {
        const Interval& interval = timeline.rows[step.rank][step.position];
        EXPECT_GE(interval.start, now);
        // nothing between two steps of the path but one message
        EXPECT_LE(interval.start, now + (step.wait == Wait::none ? 0 : 0.625 * 2));
        EXPECT_EQ(step.waited > 0, step.wait != Wait::none);
        now = interval.end;
      }
      EXPECT_DOUBLE_EQ(now, timeline.makespan);
    }
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
