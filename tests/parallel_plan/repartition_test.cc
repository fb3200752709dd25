// Layout policies: their choices are valid, not predicted to be slower, and worth the change.
#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"
#include "parallel/repartition/candidates.h"
#include "parallel/repartition/grown_batch.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

ModelSpec equal_units(int units) {
  ModelSpec model{.units = {}, .samples = 1};
  for (int u = 0; u < units; ++u)
    model.units.push_back({.name = fmt::format("{:03}", u),
                           .parameters = {{"weight", {64, 64}, false, {}, ""}},
                           .cost = {.forward_flops = 1, .input_flops = 1, .weight_flops = 1}});
  return model;
}

Job job_of_units(int units, int microbatches) {
  return {.model = equal_units(units), .microbatches = microbatches, .leaves = microbatches};
}

Request request_of_grid(int pp, int dp, const std::string& schedule = "gpipe") {
  return {.world = pp * dp, .pp = pp, .dp = dp, .schedule = schedule};
}

struct Asked {
  Request asked;
  LayoutStart start;
  Assignment now;
};
Asked freeze(const Job& job, Request request, int frozen) {
  Assignment start = assign(job, request);
  request.layout = start.layout;
  request.frozen_units = frozen;
  Assignment now = assign(job, request);
  return {request, start_of(request, start), std::move(now)};
}

/// Returns units with F = I = W = 1 second; a change takes `move`, and layouts of depth `refused`
/// are invalid.
LayoutForecast unit_forecast(const Job& job, const Asked& asked, double move = 0, int refused = 0,
                             double load = 0) {
  MachineModel machine;
  machine.moves.rebuild_s = move;
  machine.load_s = load;
  return {job,
          asked.now,
          {.units = std::vector<UnitSeconds>(job.model.units.size(), {1, 1, 1, 0}),
           .machine = machine,
           .refusal = [refused](const Assignment& next) {
             const bool is = std::ssize(next.layout.pipelines.front().stages) == refused;
             return std::string(is ? "too large" : "");
           }}};
}

LayoutDecision ask(const std::string& policy, const Job& job, const Asked& asked,
                   const LayoutForecast& forecast, const LayoutOptions& options = {},
                   std::int64_t steps_left = 100) {
  return lookup(layout_policies(), policy, "layout policy", "elastic.policy")
      .decide({.job = job,
               .asked = asked.asked,
               .now = asked.now,
               .steps_left = steps_left,
               .options = options,
               .forecast = forecast,
               .start = asked.start});
}
LayoutDecision ask(const std::string& policy, const Job& job, const Asked& asked,
                   const LayoutOptions& options = {}, std::int64_t steps_left = 100) {
  return ask(policy, job, asked, unit_forecast(job, asked), options, steps_left);
}

TEST(LayoutPolicies, PredictedTakesReplicasWhereRanksAreFree) {
  const Job job = job_of_units(12, 4);
  const Asked asked = freeze(job, request_of_grid(2, 1), 4);
  EXPECT_FALSE(ask("none", job, asked).next);
  const LayoutDecision decision = ask("predicted", job, asked);
  ASSERT_TRUE(decision.next) << decision.reason;
  EXPECT_EQ(short_form(decision.next->assignment.layout), "pp1xdp2");
  // 4 microbatches of 4 frozen and 8 trained units on two ranks, without a bubble.
  EXPECT_EQ(decision.next->step_seconds, 2 * (4 + 8 * 3));
  EXPECT_EQ(decision.next->assignment.frozen_units(), 4);
}

TEST(LayoutPolicies, PredictedLooksNoFurtherThanItMayGain) {
  const Job job = job_of_units(12, 4);
  const Asked best = freeze(job, request_of_grid(1, 2), 4),
              other = freeze(job, request_of_grid(3, 1), 4);
  // Two replicas are never idle, so no search is needed.
  EXPECT_EQ(ask("predicted", job, best).reason,
            "no layout could gain enough over 5.6e+04 ms per step, with 100 steps left");
  // A search that is cut short says so.
  const LayoutDecision hasty = ask("predicted", job, other, {.most_share = 1e-9});
  EXPECT_NE(hasty.reason.find("skipped to save time"), std::string::npos) << hasty.reason;
  EXPECT_EQ(ask("predicted", job, other).reason.find("left out"), std::string::npos);
}

TEST(LayoutPolicies, PredictedBalancesThePipelineWhereNothingElseMayChange) {
  const Job job = job_of_units(12, 4);
  const Asked asked = freeze(job, request_of_grid(2, 1), 6);
  const LayoutDecision decision =
      ask("predicted", job, asked, {.depth = false, .replicas = false, .schedule = false});
  ASSERT_TRUE(decision.next) << decision.reason;
  const LayoutChoice& next = *decision.next;
  EXPECT_EQ(short_form(next.assignment.layout), "pp2xdp1");
  EXPECT_EQ(next.request.schedule, "gpipe");
  EXPECT_LT(next.step_seconds, decision.step_seconds);
  // No other cut is faster.
  const LayoutForecast forecast = unit_forecast(job, asked);
  for (int cut = 1; cut < 12; ++cut) {
    Request request = asked.asked;
    request.layout = make_layout({{0, cut}, {cut, 12}}, {2, 1}, 4, 4);
    EXPECT_GE(forecast.step_seconds(assign(job, request)), next.step_seconds) << cut;
  }
}

TEST(LayoutPolicies, WhatIsChosenIsNeverPredictedToBeWorseAndGainsMoreThanItCosts) {
  for (const int world : {1, 2, 3, 4, 6, 8})
    for (const std::string schedule : {"gpipe", "1f1b", "zb-v", "dualpipe"})
      for (const int frozen : {0, 3, 7, 15})
        for (const double move : {0.0, 40.0, 1e9}) {
          const Job job = job_of_units(16, 8);
          Asked asked;
          try {
            Request request = request_of_grid(world, 1, schedule);
            request.pp = request.dp = 0;
            asked = freeze(job, request, frozen);
          } catch (const Error&) {
            continue;  // the schedule does not support this world
          }
          const LayoutForecast forecast = unit_forecast(job, asked, move);
          const LayoutDecision decision = ask("predicted", job, asked, forecast);
          EXPECT_FALSE(decision.reason.empty());
          if (!decision.next) continue;
          EXPECT_LT(move, 1e9);
          const LayoutChoice& next = *decision.next;
          EXPECT_GT((decision.step_seconds - next.step_seconds) * 100, next.move_seconds);
          EXPECT_EQ(next.step_seconds, forecast.step_seconds(next.assignment));
          // The chosen layout can be requested again.
          const Assignment again = assign(job, next.request);
          EXPECT_EQ(again.layout, next.assignment.layout);
          EXPECT_EQ(again.plan.rows, next.assignment.plan.rows);
        }
}

TEST(LayoutPolicies, PredictedTakesTheNextBestWhereTheBestDoesNotFit) {
  const Job job = job_of_units(12, 4);
  const Asked asked = freeze(job, request_of_grid(2, 1), 8);
  const LayoutDecision decision =
      ask("predicted", job, asked, unit_forecast(job, asked, 0, /*refused=*/1));
  EXPECT_NE(decision.reason.find("too large"), std::string::npos) << decision.reason;
  if (!decision.next) return;
  EXPECT_NE(std::ssize(decision.next->assignment.layout.pipelines.front().stages), 1);
}

/// Three machines with slow links; one of the units takes a tenth of a second.
TEST(LayoutPolicies, PredictedLeavesRanksIdleWhereLinksAreSlow) {
  for (const auto& [world, bandwidth] : {std::pair{2, 1e3}, {4, 1e3}, {4, 1e2}}) {
    const Job job = [] {
      Job one = job_of_units(4, 4);
      one.model.boundary_bytes = 10'000;
      return one;
    }();
    const Asked asked = freeze(job, request_of_grid(2, world / 2, "1f1b"), 2);
    MachineModel machine;
    machine.local.bandwidth = bandwidth;
    const LayoutForecast forecast(
        job, asked.now,
        {.units = std::vector<UnitSeconds>(4, {.1, .1, .1, 0}), .machine = machine});
    const LayoutDecision decision = ask("predicted", job, asked, forecast);
    ASSERT_TRUE(decision.next) << decision.reason;
    EXPECT_EQ(describe(decision.next->request, decision.next->assignment),
              fmt::format("pp1xdp1 1f1b, {} spare", world - 1));
  }
}

/// Four stages on a host with two cores were measured: they are predicted to take the measured
/// time, and two replicas, which need no more cores, are as fast as four.
TEST(LayoutPolicies, PredictedKnowsOfRanksThatShareCores) {
  const Job job = job_of_units(8, 8);
  const Asked asked = freeze(job, request_of_grid(4, 1), 0);
  ForecastInput input{.units = std::vector<UnitSeconds>(8, {1, 1, 1, 0})};
  const LayoutForecast alone(job, asked.now, input);
  input.cores = 2;
  const LayoutForecast shared(job, asked.now, input);
  EXPECT_DOUBLE_EQ(shared.step_seconds(asked.now), alone.step_seconds(asked.now));
  const Assignment two = assign(job, {.world = 4, .spare = 2, .pp = 1, .dp = 2}),
                   four = assign(job, {.world = 4, .pp = 1, .dp = 4});
  EXPECT_DOUBLE_EQ(alone.step_seconds(two), 2 * alone.step_seconds(four));
  EXPECT_DOUBLE_EQ(shared.step_seconds(two), shared.step_seconds(four));
  EXPECT_LE(shared.least_seconds(0, 4), shared.step_seconds(four));
  EXPECT_EQ(shared.least_seconds(0, 4), shared.least_seconds(0, 2));
}

TEST(LayoutPolicies, PredictedKeepsTheScheduleFileOfAUser) {
  const Job job = job_of_units(4, 4);
  Asked asked = freeze(job, request_of_grid(2, 1), 2);
  asked.asked.schedule = "./own.csv";
  asked.asked.file = ScheduleFile{"own.csv", asked.now.plan, asked.now.layout};
  EXPECT_FALSE(ask("predicted", job, asked).next);
  EXPECT_FALSE(ask("pipetransformer", job, asked).next);
}

TEST(LayoutPolicies, PipetransformerHalvesWhenTheLargestStageIsSmallerThanAtTheStart) {
  const Job job = job_of_units(16, 8);
  std::vector<std::string> layouts;
  for (const int frozen : {0, 2, 4, 8, 12, 14}) {
    const Asked asked = freeze(job, request_of_grid(4, 1), frozen);
    const LayoutDecision decision = ask("pipetransformer", job, asked);
    layouts.push_back(
        short_form(decision.next ? decision.next->assignment.layout : asked.now.layout));
  }
  // Starts with 4 stages of 4 units. 12 + 4/6 units on 2 stages are 6.3 each; 4 + 12/6 are 3; on
  // one stage, 2 + 14/6 are 4.3.
  EXPECT_EQ(layouts, (std::vector<std::string>{"pp4xdp1", "pp4xdp1", "pp4xdp1", "pp4xdp1",
                                               "pp2xdp2", "pp2xdp2"}));
}

/// Like after a resume.
TEST(LayoutPolicies, PipetransformerHasNoDeeperPipelinesThanThereAreRanks) {
  const Job job = job_of_units(16, 8);
  for (const int frozen : {0, 8, 14}) {
    Asked asked = freeze(job, request_of_grid(2, 1), frozen);
    asked.start.stages = 4;
    const LayoutDecision decision = ask("pipetransformer", job, asked);
    const Layout& layout = decision.next ? decision.next->assignment.layout : asked.now.layout;
    EXPECT_EQ(short_form(layout), "pp2xdp1") << frozen;
  }
}

TEST(GrownBatch, IsTheReplicasOverThoseOfTheStartOrLessWhereThatDoesNotDivideTheRun) {
  for (int first = 1; first <= 5; ++first)
    for (int replicas = 1; replicas <= 17; ++replicas)
      for (std::int64_t left = 0; left <= 60; ++left) {
        const int batches = grown_batches(replicas, first, left);
        EXPECT_GE(batches, 1);
        EXPECT_EQ(left % batches, 0);
        EXPECT_LE(batches, std::max(1, replicas / first));
        for (int more = batches + 1; more <= replicas / first; ++more) EXPECT_NE(left % more, 0);
      }
  EXPECT_EQ(grown_batches(4, 2, 10), 2);
  EXPECT_EQ(grown_batches(4, 1, 10), 2);
  EXPECT_EQ(grown_batches(4, 1, 7), 1);
}

TEST(GrownBatch, EachReplicaKeepsItsOwnWherePoliciesMakeMoreOfThem) {
  const Job job = job_of_units(16, 8);
  for (const std::string policy : {"predicted", "pipetransformer"})
    for (const std::int64_t left : {100, 99, 97}) {
      const Asked asked = freeze(job, request_of_grid(4, 1), 14);
      const LayoutDecision decision = ask(policy, job, asked, {.grows = true}, left);
      ASSERT_TRUE(decision.next) << decision.reason;
      const Assignment& next = decision.next->assignment;
      const int replicas = static_cast<int>(next.layout.pipelines.size());
      EXPECT_GT(replicas, 1);
      EXPECT_EQ(next.batches, grown_batches(replicas, 1, left)) << policy << ", " << left;
      EXPECT_EQ(next.layout.pipelines.back().last_microbatch, 8 * next.batches);
      EXPECT_EQ(decision.next->step_seconds, unit_forecast(job, asked).step_seconds(next));
      EXPECT_EQ(ask(policy, job, asked, {}, left).next->assignment.batches, 1);
    }
}

TEST(GrownBatch, MayHaveMoreReplicasThanABatchHasLeaves) {
  const Job job = job_of_units(16, 2);
  const Asked asked = freeze(job, request_of_grid(4, 1), 15);
  for (const std::string policy : {"predicted", "pipetransformer"})
    for (const bool grows : {false, true}) {
      const LayoutDecision decision = ask(policy, job, asked, {.grows = grows});
      ASSERT_TRUE(decision.next) << decision.reason;
      const std::size_t replicas = decision.next->assignment.layout.pipelines.size();
      if (!grows) {
        EXPECT_LE(replicas, 2U);
      } else if (policy == "predicted") {
        EXPECT_EQ(replicas, 4U);
      }
    }
}

/// Like after a resume on fewer ranks.
TEST(GrownBatch, StaysWhereTheReplicasDo) {
  const Job job = job_of_units(16, 8);
  for (const int pp : {1, 2}) {
    Request request = request_of_grid(pp, 1);
    request.batches = 3;
    Asked asked = freeze(job, request, 6);
    asked.start.world = 3 * pp;
    EXPECT_EQ(asked.now.batches, 3);
    for (const std::string policy : {"predicted", "pipetransformer"}) {
      const LayoutDecision decision =
          ask(policy, job, asked, {.replicas = false, .grows = true}, 99);
      if (!decision.next) continue;
      EXPECT_EQ(pp, 2) << decision.reason;
      if (decision.next->assignment.layout.pipelines.size() == 1) {
        EXPECT_EQ(decision.next->assignment.batches, 3);
      }
    }
  }
}

/// The cost of a decision is bounded for any number of ranks. The load makes each layout take
/// longer than any bound, so all are considered.
TEST(LayoutPolicies, ADecisionForManyRanksTakesSeconds) {
  for (const int world : {16, 512}) {
    const int microbatches = 4 * world;
    const Job job = job_of_units(96, microbatches);
    const Asked asked = freeze(job, request_of_grid(16, world / 16, "1f1b"), 48);
    const LayoutForecast forecast = unit_forecast(job, asked, 0, 0, /*load=*/1e6);
    const auto start = std::chrono::steady_clock::now();
    const LayoutDecision decision = ask("predicted", job, asked, forecast);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("a decision for %d ranks, 96 units, %d microbatches: %.2f s; %s\n", world,
                microbatches, seconds, decision.reason.c_str());
    EXPECT_LT(seconds, 60);
    const bool cut = decision.reason.find("skipped to save time") != std::string::npos;
    EXPECT_EQ(cut, world == 512) << decision.reason;
  }
}

}  // namespace
}  // namespace concertina
