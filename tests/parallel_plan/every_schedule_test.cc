// Properties of every schedule in the registry; new ones are tested without new code here.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "parallel/generate/passes.h"
#include "parallel/plan/infer_layout.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

std::string text_of(const std::optional<Violation>& violation) {
  return violation ? violation->text : "accepted";
}

struct Case {
  const Entry<Schedule>& schedule;
  int p, m, v;
  Layout layout;
};

/// Returns the schedule's usual number of chunks and, if others are allowed, the next one.
std::set<int> chunk_counts(const Chunks& chunks) {
  return {chunks.default_value, std::min(chunks.most, chunks.default_value + chunks.step)};
}

/// Visits every schedule x p x m, including those to which the published rule had to be extended.
template <class Visit>
void each_case(Visit visit) {
  for (const Entry<Schedule>& schedule : schedules())
    for (const int v : chunk_counts(schedule.value.chunks))
      for (const int p : {1, 2, 3, 4, 8})
        for (const int m : std::set{1, 2, p, 2 * p, 4 * p, 7, 2 * p + 1}) {
          const Folding folding = folding_of(schedule, v);
          if (p % folding.rank_step != 0 || m < folding.pipelines()) continue;
          SCOPED_TRACE(fmt::format("{} p={} m={} v={}", schedule.name, p, m, v));
          visit(Case{schedule, p, m, v, folded(schedule, p, m, v)});
        }
}

TEST(EverySchedule, IsAccepted) {
  each_case([](const Case& one) {
    const Plan plan = make_plan(one.layout, one.schedule.name);
    EXPECT_EQ(text_of(check(plan, one.layout)), "accepted");
    const Plan compute =
        make_plan(one.layout, one.schedule.name, {.transfers = false, .reduction = false});
    EXPECT_EQ(text_of(check(compute, one.layout, limits_of(compute))), "accepted");
  });
}

TEST(EverySchedule, IsAcceptedOnItsReplicas) {
  for (const Entry<Schedule>& schedule : schedules()) {
    const Layout layout = folded(schedule, 2, 12, 0, 3);
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(text_of(check(make_plan(layout, schedule.name), layout)), "accepted");
  }
}

/// A layout of another kind is run, or rejected with a message that says what the schedule needs.
TEST(EverySchedule, RunsOnEveryKindOfLayoutOrSaysItsRule) {
  for (const Entry<Schedule>& schedule : schedules()) {
    for (const auto& [kind, layout] : odd_layouts()) {
      SCOPED_TRACE(fmt::format("{} on {}", schedule.name, kind));
      try {
        EXPECT_EQ(text_of(check(make_plan(layout, schedule.name), layout)), "accepted");
      } catch (const Error& error) {
        EXPECT_FALSE(schedule.value.any_layout);
        EXPECT_EQ(error.code(), Exit::bad_input);
        EXPECT_EQ(error.where(), "parallel.layout");
        expect_has(error.fix(), describe(schedule.value));
      }
    }
  }
}

TEST(EverySchedule, ReadsBackFromItsText) {
  each_case([](const Case& one) {
    const Plan plan = make_plan(one.layout, one.schedule.name);
    EXPECT_EQ(parse_plan(to_text(plan), "text"), plan);
    if (one.layout.pipelines.size() > 1) return;  // text does not show where a pipeline ends
    EXPECT_EQ(infer_layout(plan, "text"), one.layout);
  });
}

void expect_claim(const std::optional<Claim>& claim, double value) {
  constexpr double kRounding = 1e-12;
  if (!claim) return;
  EXPECT_LE(value, claim->value + kRounding);
  EXPECT_GE(value, claim->exact ? claim->value - kRounding : 0);
}

TEST(EverySchedule, HasItsClosedFormBubble) {
  each_case([](const Case& one) {
    for (const bool transfers : {true, false}) {
      const Plan plan =
          make_plan(one.layout, one.schedule.name, {.transfers = transfers, .reduction = false});
      const Timeline timeline = simulate(plan, one.layout, unit_costs(one.layout));
      for (const double busy : timeline.busy) EXPECT_DOUBLE_EQ(busy, 3.0 * one.m * one.v);
      expect_claim(one.schedule.value.bubble.at(one.p, one.m, one.v),
                   idle_over_ideal(plan, timeline).span);
    }
  });
}

/// Divides microbatches as `train` and `schedule` do: opposite pipelines have whole leaves, whose
/// number is odd for m = 18, 22, 30 ...
TEST(EverySchedule, HasItsClosedFormsWithTheUsualLeaves) {
  int unequal = 0;
  for (const Entry<Schedule>& schedule : schedules())
    for (const int p : {2, 4, 6})
      for (int m = 2; m <= 44; ++m) {
        const Folding folding = folding_of(schedule, 0);
        const int default_value = default_leaves(m),
                  leaves = default_value < folding.pipelines() ? m : default_value;
        const Layout layout =
            make_layout(single_units(p * folding.chunks), {p, 1}, m, leaves, folding);
        const Plan plan =
            make_plan(layout, schedule.name, {.reduction = false, .leaf_microbatches = m / leaves});
        const Timeline timeline = simulate(plan, layout, unit_costs(layout));
        SCOPED_TRACE(fmt::format("{} p={} m={} of {} leaves", schedule.name, p, m, leaves));
        const ClosedForm& bubble = schedule.value.bubble;
        expect_claim(bubble.on(layout, folding.chunks), idle_over_ideal(plan, timeline).span);
        expect_claim(schedule.value.peak.on(layout, folding.chunks),
                     *std::ranges::max_element(timeline.peak_activations));
        unequal += bubble.at(p, m, folding.chunks) && !bubble.on(layout, folding.chunks);
      }
  EXPECT_GT(unequal, 10);
}

TEST(EverySchedule, HasItsClosedFormPeakOfActivations) {
  each_case([](const Case& one) {
    const Plan plan = make_plan(one.layout, one.schedule.name);
    const std::vector<int> peaks =
        simulate(plan, one.layout, unit_costs(one.layout)).peak_activations;
    const int peak = *std::max_element(peaks.begin(), peaks.end());
    expect_claim(one.schedule.value.peak.at(one.p, one.m, one.v), peak);
    Limits limits;
    limits.peak_activations = peaks;
    EXPECT_EQ(text_of(check(plan, one.layout, limits)), "accepted");
    --limits.peak_activations.back();
    EXPECT_EQ(check(plan, one.layout, limits).value().rule, Rule::memory);
    const std::vector<RowMemory> memory = plan_memory(plan, one.layout);
    for (std::size_t rank = 0; rank < memory.size(); ++rank) {
      int slots = 0;
      for (const StageSlots& stage : memory[rank].stages) slots += stage.saved;
      EXPECT_GE(slots, peaks[rank]);  // a stage's peak may be at another time
    }
  });
}

/// For any costs, no rank works longer than its actions take, no action runs before its input, and
/// the makespan is between the busiest rank's time and the sum of all work.
TEST(EverySchedule, SimulatesWithAnyCosts) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0.1, 3);
  each_case([&](const Case& one) {
    const Plan plan = make_plan(one.layout, one.schedule.name);
    Costs costs = unit_costs(one.layout);
    for (StageCosts& stage : costs.stages)
      stage = {seconds(random), seconds(random), seconds(random)};
    costs.local.latency = seconds(random) / 10;
    const Timeline timeline = simulate(plan, one.layout, costs);
    double busiest = 0, all = costs.local.latency * 4 * one.m * one.layout.stage_count();
    for (const double busy : timeline.busy) busiest = std::max(busiest, busy), all += busy;
    EXPECT_GE(timeline.makespan, busiest * (1 - 1e-12));
    EXPECT_LE(timeline.makespan, all * (1 + 1e-12));
  });
}

TEST(EverySchedule, AddsGradientsOfALeafInOrder) {
  for (const Entry<Schedule>& schedule : schedules()) {
    SCOPED_TRACE(schedule.name);
    const Layout layout = folded(schedule, 4, 16);
    const int pipelines = static_cast<int>(layout.pipelines.size());
    for (const int leaf : {1, 2, 4, 16 / pipelines})
      EXPECT_NO_THROW(make_plan(layout, schedule.name, {.leaf_microbatches = leaf}));
  }
}

TEST(EverySchedule, RefusesANumberOfChunksThatItHasNoFormFor) {
  for (const Entry<Schedule>& schedule : schedules()) {
    const Chunks& chunks = schedule.value.chunks;
    const Error error = input_error([&] { folding_of(schedule, chunks.most + 1); });
    EXPECT_EQ(error.where(), "parallel.chunks");
    EXPECT_EQ(folding_of(schedule, 0).chunks, chunks.default_value);
    EXPECT_EQ(chunks.default_value % chunks.step, 0);
  }
}

}  // namespace
}  // namespace concertina
