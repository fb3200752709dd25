// Searched schedules: within the limit, never worse than named ones, and reproducible.
#include "parallel/generate/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "parallel/generate/list_rows.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/row_judge.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/bubble_definitions.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

constexpr Limits kComputeOnly{.transfers = false, .reduction = false};

Costs random_costs(const Layout& layout, std::mt19937& random) {
  Costs costs = unit_costs(layout);
  std::uniform_real_distribution<double> seconds(0.2, 2);
  for (StageCosts& stage : costs.stages)
    stage = {.forward = seconds(random), .input = seconds(random), .weight = seconds(random)};
  costs.local.latency = seconds(random) / 10;
  return costs;
}

SearchBounds quick(std::vector<int> peak = {}) {
  SearchBounds bounds;
  bounds.peak_activations = std::move(peak);
  bounds.effort = 300'000;
  return bounds;
}

Plan finished(const Plan& compute, const Layout& layout) {
  return add_reduction(add_transfers({merge_input_weight({compute, layout}), layout}));
}

/// The result is accepted, within the limit and as long as reported, and no schedule within the
/// limit is shorter, for steps and spans, and for any share of a microbatch that W needs.
TEST(Search, IsNeverLongerThanAnyScheduleWithinTheBound) {
  std::mt19937 random(7);
  for (const auto& [name, layout] : odd_layouts()) {
    SCOPED_TRACE(name);
    const Costs costs = random_costs(layout, random);
    for (const auto& [objective, bound, kept] : {std::tuple{Objective::step, 0, 1.0},
                                                 {Objective::step, 3, 1.0},
                                                 {Objective::step, 8, 1.0},
                                                 {Objective::span, 0, 1.0},
                                                 {Objective::span, 3, 1.0},
                                                 {Objective::span, 4, 0.4},
                                                 {Objective::span, 8, 0.0}}) {
      SearchBounds bounds = quick();
      if (bound > 0) bounds.peak_activations.assign(rank_count(layout), bound);
      bounds.kept_for_weight = kept;
      bounds.objective = objective;
      const SearchResult found = search(layout, costs, named_plans(layout), bounds);
      const auto fits = [&, bound = bound, kept = kept](const Plan& plan) {
        return bound == 0 || std::ranges::all_of(plan.rows, [&](const std::vector<Action>& row) {
                 return kept_peak(row, kept) <= bound + 1e-9;
               });
      };
      const auto length = [&, objective = objective](const Plan& plan) {
        const Timeline timeline = simulate(plan, layout, costs);
        return objective == Objective::step ? timeline.makespan : longest_span(plan, timeline);
      };
      for (const Plan& named : named_plans(layout))
        EXPECT_TRUE(!fits(named) || found.seconds <= length(named) + 1e-9);
      if (std::isinf(found.seconds)) continue;
      EXPECT_TRUE(fits(found.plan));
      const auto violation = check(finished(found.plan, layout), layout);
      EXPECT_FALSE(violation) << violation->text;
      EXPECT_NEAR(found.seconds, length(found.plan), 1e-9);
    }
  }
}

TEST(Search, FindsTheLowerBoundWhereThereIsOne) {
  // One rank never waits; two stages with enough memory wait only for the first forward.
  const Layout one = over({0, 0, 0}, 3), two = straight(2, 8);
  EXPECT_DOUBLE_EQ(search(one, unit_costs(one), {}, quick()).seconds, 27);
  EXPECT_DOUBLE_EQ(search(two, unit_costs(two), {}, quick()).seconds, 25);
}

/// The bound is never above a result, is reached by schedules known to be optimal, and accounts for
/// messages and unequal stages.
TEST(Search, TheBoundIsBelowEverySchedule) {
  std::mt19937 random(17);
  for (const auto& [name, layout] : odd_layouts()) {
    SCOPED_TRACE(name);
    for (int i = 0; i < 20; ++i) {
      const Costs costs = random_costs(layout, random);
      RowJudge judge(layout, costs);
      for (const Objective objective : {Objective::step, Objective::span}) {
        const double least = least_length(judge, objective);
        EXPECT_GT(least, 0);
        SearchBounds bounds = quick();
        bounds.effort = 20'000;
        bounds.objective = objective;
        EXPECT_GE(search(layout, costs, named_plans(layout), bounds).seconds, least * (1 - 1e-12));
      }
    }
  }
  const Layout four = straight(4, 8);
  EXPECT_DOUBLE_EQ(least_length(RowJudge(four, unit_costs(four)), Objective::step), 27) << "zb-h1";
  EXPECT_DOUBLE_EQ(least_length(RowJudge(four, unit_costs(four)), Objective::span), 24);
  // F of both stages, the message, I of both, W of the first: nothing overlaps.
  const Layout alone = straight(2, 1);
  Costs costs = unit_costs(alone);
  costs.stages[0] = {.forward = 1, .input = 2, .weight = 4};
  costs.stages[1] = {.forward = 8, .input = 16, .weight = 32};
  costs.local.latency = 0.5;
  EXPECT_DOUBLE_EQ(least_length(RowJudge(alone, costs), Objective::step), 1 + 0.5 + 8 + 16 + 32);
  costs.stages[1].weight = 1;
  EXPECT_DOUBLE_EQ(least_length(RowJudge(alone, costs), Objective::step),
                   1 + 0.5 + 8 + 16 + 0.5 + 2 + 4);
}

TEST(Search, AFewActionsTakeAFewMoves) {
  const Layout layout = straight(2, 2);
  std::mt19937 random(1);
  const Costs costs = random_costs(layout, random);
  int asked = 0;
  SearchBounds bounds{.peak_activations = {1, 1}};  // much less than without a limit
  bounds.effort = 300'000'000;
  bounds.keep_searching = [&](double) { return ++asked > 0; };
  const SearchResult found = search(layout, costs, named_plans(layout), bounds);
  EXPECT_LT(asked, 20'000) << "at every 16th move";
  EXPECT_GT(found.seconds, least_length(RowJudge(layout, costs), Objective::step) * 1.01);
}

TEST(Search, IsTheSameEveryTime) {
  const Layout layout = straight(4, 8);
  std::mt19937 random(3);
  const Costs costs = random_costs(layout, random);
  SearchBounds bounds = quick({4, 4, 4, 4});
  const SearchResult first = search(layout, costs, named_plans(layout), bounds);
  EXPECT_EQ(search(layout, costs, named_plans(layout), bounds).plan, first.plan);
  EXPECT_TRUE(std::isinf(search(layout, costs, {}, quick({0, 0, 0, 0})).seconds));
}

/// Expects that the rows of a rule, if any, are complete and keep at most `bound(rank)` per rank.
void expect_rows(const std::optional<Rows>& rows, const Layout& layout, double kept,
                 const std::function<double(std::size_t rank)>& bound, int& made) {
  if (!rows) return;
  ++made;
  const auto violation = check(Plan{*rows}, layout, kComputeOnly);
  EXPECT_FALSE(violation) << violation->text;
  for (std::size_t rank = 0; rank < rows->size(); ++rank)
    EXPECT_LE(kept_peak((*rows)[rank], kept), bound(rank) + 1e-9);
}

TEST(Search, RulesKeepTheirBounds) {
  std::mt19937 random(5);
  for (const auto& [name, layout] : odd_layouts()) {
    SCOPED_TRACE(name);
    const Costs equal = unit_costs(layout), costs = random_costs(layout, random);
    const RowJudge unit_judge(layout, equal), judge(layout, costs);
    int greedy = 0, steady = 0;
    for (const GreedyRule& rule : greedy_rules(layout, {}))
      expect_rows(
          greedy_rows(unit_judge, rule), layout, 1,
          [&](std::size_t rank) { return rule.most.empty() ? 1e9 : rule.most[rank]; }, greedy);
    for (const double kept : {0.0, 0.37, 1.0})
      for (const int bound : {0, 2, 5, 100})
        for (const SteadyRule& rule : steady_rules())
          expect_rows(
              steady_rows(judge, rule, std::vector<int>(bound > 0 ? judge.ranks() : 0, bound),
                          kept),
              layout, kept, [&](std::size_t) { return bound > 0 ? bound : 1e9; }, steady);
    EXPECT_GT(greedy, 0);
    EXPECT_GT(steady, 0);
  }
}

TEST(Search, KeptPeakIsThePeakWhereWNeedsEverything) {
  for (const auto& [name, layout] : odd_layouts())
    for (const Plan& plan : named_plans(layout))
      for (const std::vector<Action>& row : plan.rows)
        EXPECT_EQ(kept_peak(row), peak_saved(row, [](int) { return 1U; })) << name;
  const auto row = parse_plan("0F0,0F1,0I0,0F2,0W0,0I1,0B2,0W1\n", "text").rows[0];
  EXPECT_DOUBLE_EQ(kept_peak(row, 0.25), 2.25);
  EXPECT_DOUBLE_EQ(kept_peak(row, 0), 2);
}

/// Qi et al. 2024, tables 5 and 9: the results of their search with the memory of 1F1B (ZB-1p) and
/// with twice as much (ZB-2p), where W needs 32 h of 34 h + 5 a s (table 1).
TEST(Search, ReachesThePublishedZeroBubbleSchedules) {
  struct Published {
    int p, m;
    double forward, input, weight, message, hidden, heads, once, twice;
  };
  for (const Published& row :
       {Published{8, 24, 18.522, 18.086, 9.337, 0.601, 2304, 24, 0.1585, 0.0433},
        {8, 64, 18.546, 18.097, 9.321, 0.762, 2304, 24, 0.0674, 0.0026},
        {8, 24, 29.718, 29.444, 19.927, 0.527, 4096, 32, 0.1323, 0.0029},
        {16, 48, 11.347, 11.248, 8.132, 0.377, 5120, 40, 0.1397, 0.0066}}) {
    const Layout layout = straight(row.p, row.m);
    Costs costs = unit_costs(layout);
    for (StageCosts& stage : costs.stages)
      stage = {.forward = row.forward, .input = row.input, .weight = row.weight};
    costs.take_latency_alone(row.message);
    for (const auto& [times, published] : {std::pair{1, row.once}, {2, row.twice}}) {
      SearchBounds bounds = quick(std::vector<int>(row.p, times * row.p));
      bounds.kept_for_weight = 32 * row.hidden / (34 * row.hidden + 5 * row.heads * 1024);
      bounds.objective = Objective::span;
      const SearchResult found = search(layout, costs, named_plans(layout), bounds);
      const double work = row.m * (row.forward + row.input + row.weight);
      EXPECT_LE(1 - work / found.seconds, published + 1e-4) << row.p << " " << row.m;
    }
  }
}

/// The last rank cannot delay more W than it may keep, so the span is at least (p-1) (F + I + 2
/// message) + m (F + I) + (m - most) W + W. If W needs all of a microbatch, the search reaches this
/// bound.
TEST(Search, ReachesTheLowerBoundOfStrictMemory) {
  const int p = 8, m = 24, most = 16;
  const Layout layout = straight(p, m);
  Costs costs = unit_costs(layout);
  for (StageCosts& stage : costs.stages) stage = {.forward = 18, .input = 18, .weight = 9};
  costs.take_latency_alone(0.5);
  SearchBounds bounds = quick(std::vector<int>(p, most));
  bounds.objective = Objective::span;
  const double least = (p - 1) * (18 + 18 + 2 * 0.5) + m * (18 + 18) + (m - most) * 9 + 9;
  EXPECT_DOUBLE_EQ(search(layout, costs, {}, bounds).seconds, least);
}

/// Effort for minutes, but nothing to search: the only rank is never idle.
TEST(Search, OneRankTakesNoEffort) {
  const Layout layout = over({0, 0, 0}, 16);
  SearchBounds bounds;
  bounds.effort = std::int64_t{1} << 60;
  const SearchResult result = search(layout, unit_costs(layout), named_plans(layout), bounds);
  EXPECT_DOUBLE_EQ(result.seconds, 3 * 3 * 16);
}

}  // namespace
}  // namespace concertina
