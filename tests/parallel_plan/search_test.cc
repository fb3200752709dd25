// Searched schedules: within the bound, never worse than what there is, the same every time.
#include "parallel/generate/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "parallel/generate/greedy_rows.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/row_judge.h"
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
  return add_reduction(add_transfers(merge_input_weight(compute, layout), layout));
}

TEST(Search, NeverTakesLongerThanAnyScheduleWithinTheBound) {
  std::mt19937 random(7);
  for (const auto& [name, layout] : odd_layouts()) {
    SCOPED_TRACE(name);
    const Costs costs = random_costs(layout, random);
    for (const int bound : {0, 3, 8}) {
      std::vector<int> peak;
      if (bound > 0) peak.assign(static_cast<std::size_t>(rank_count(layout)), bound);
      const SearchResult found = search(layout, costs, named_plans(layout), quick(peak));
      for (const Plan& named : named_plans(layout)) {
        Limits limits = kComputeOnly;
        limits.peak_activations = peak;
        if (check(named, layout, limits)) continue;
        EXPECT_LE(found.seconds, simulate(named, layout, costs).makespan * (1 + 1e-12));
      }
      if (std::isinf(found.seconds)) continue;
      Limits limits;
      limits.peak_activations = peak;
      const auto violation = check(finished(found.plan, layout), layout, limits);
      EXPECT_FALSE(violation) << violation->text;
      EXPECT_NEAR(found.seconds, simulate(found.plan, layout, costs).makespan, 1e-9);
    }
  }
}

TEST(Search, FindsTheLowerBoundWhereThereIsOne) {
  // One rank waits for nothing; two stages with room for everything wait for the first forward.
  const Layout one = over({0, 0, 0}, 3), two = straight(2, 8);
  EXPECT_DOUBLE_EQ(search(one, unit_costs(one), {}, quick()).seconds, 27);
  EXPECT_DOUBLE_EQ(search(two, unit_costs(two), {}, quick()).seconds, 25);
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

TEST(Search, RulesKeepTheirBounds) {
  for (const auto& [name, layout] : odd_layouts()) {
    const Costs costs = unit_costs(layout);
    RowJudge judge(layout, costs);
    int made = 0;
    for (const GreedyRule& rule : greedy_rules(layout, {})) {
      const auto rows = greedy_rows(judge, rule);
      if (!rows) continue;
      ++made;
      const auto violation = check(Plan{*rows}, layout, kComputeOnly);
      EXPECT_FALSE(violation) << violation->text;
      for (std::size_t rank = 0; rank < rows->size() && !rule.most.empty(); ++rank)
        EXPECT_LE(RowJudge::peak((*rows)[rank]), rule.most[rank]);
    }
    EXPECT_GT(made, 0) << name;
  }
}

/// Effort for minutes, but nothing to search: the one rank computes all the time anyway.
TEST(Search, OneRankTakesNoEffort) {
  const Layout layout = over({0, 0, 0}, 16);
  SearchBounds bounds;
  bounds.effort = std::int64_t{1} << 60;
  const SearchResult result = search(layout, unit_costs(layout), named_plans(layout), bounds);
  EXPECT_DOUBLE_EQ(result.seconds, 3 * 3 * 16);
}

}  // namespace
}  // namespace concertina
