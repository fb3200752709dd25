// Skipped weight gradients: against all shares of a grid, and the properties of a policy.
#include "parallel/policies/weight_skips.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "parallel/generate/passes.h"
#include "parallel/policies/linear_program.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

TEST(LinearProgram, PricesAreTheDual) {
  // Maximise 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: x = 2, y = 6, worth 36.
  const auto prices = row_prices({{{1, 0}, {0, 2}, {3, 2}}, {4, 12, 18}, {3, 5}});
  ASSERT_TRUE(prices.has_value());
  EXPECT_NEAR((*prices)[0], 0, 1e-12);
  EXPECT_NEAR((*prices)[1], 1.5, 1e-12);
  EXPECT_NEAR((*prices)[2], 1, 1e-12);
  EXPECT_FALSE(row_prices({{{-1, 1}}, {1}, {1, 0}}).has_value());
}

TEST(LinearProgram, PricesAreWorthTheBestVertex) {
  EXPECT_TRUE(rc::check([] {
    // Lines a x + b y = c, the axes included; every vertex is where two of them meet.
    std::vector<std::array<double, 3>> lines{{-1, 0, 0}, {0, -1, 0}};
    LinearProgram program;
    const auto number = [](int low) { return *rc::gen::inRange(low, 10) / 4.0; };
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
      program.rows.push_back({0.25 + number(0), 0.25 + number(0)});
      program.limit.push_back(number(0));
      lines.push_back({program.rows.back()[0], program.rows.back()[1], program.limit.back()});
    }
    program.gain = {number(-4), number(-4)};
    double best = 0;
    for (const auto& p : lines)
      for (const auto& q : lines) {
        const double d = p[0] * q[1] - p[1] * q[0];
        if (d == 0) continue;
        const double x = (p[2] * q[1] - p[1] * q[2]) / d, y = (p[0] * q[2] - p[2] * q[0]) / d;
        const bool allowed = std::all_of(lines.begin(), lines.end(), [&](const auto& line) {
          return line[0] * x + line[1] * y <= line[2] + 1e-9;
        });
        if (allowed) best = std::max(best, program.gain[0] * x + program.gain[1] * y);
      }
    const std::vector<double> prices = row_prices(program).value();
    const double worth =
        std::inner_product(prices.begin(), prices.end(), program.limit.begin(), 0.0);
    RC_ASSERT(std::abs(worth - best) < 1e-6);
    for (int column = 0; column < 2; ++column) {
      double paid = 0;
      for (std::size_t i = 0; i < prices.size(); ++i)
        paid += prices[i] * program.rows[i][static_cast<std::size_t>(column)];
      RC_ASSERT(paid >= program.gain[static_cast<std::size_t>(column)] - 1e-9);
    }
  }));
}

TEST(LinearProgram, DoesNotCycle) {
  // Beale's example, on which the rule of the largest gain cycles; its optimum is 1/20.
  const LinearProgram beale{{{0.25, -60, -0.04, 9}, {0.5, -90, -0.02, 3}, {0, 0, 1, 0}},
                            {0, 0, 1},
                            {0.75, -150, 0.02, -6}};
  const auto prices = row_prices(beale);
  ASSERT_TRUE(prices.has_value());
  EXPECT_NEAR((*prices)[2], 0.05, 1e-9);
}

double makespan_of(const Plan& plan, const Layout& layout, Costs costs,
                   const std::vector<double>& share) {
  for (std::size_t s = 0; s < share.size(); ++s) costs.stages[s].weight *= 1 - share[s];
  return simulate(plan, layout, costs).makespan;
}

Costs random_costs(const Layout& layout) {
  Costs costs = unit_costs(layout);
  const auto seconds = [] { return *rc::gen::inRange(1, 40) / 8.0; };
  for (StageCosts& stage : costs.stages)
    stage = {.forward = seconds(), .input = seconds(), .weight = seconds()};
  return costs;
}

std::string_view any_schedule() {
  return *rc::gen::element<std::string_view>("gpipe", "1f1b", "zb-h1", "zb-h2");
}

/// Calls f with every vector of `count` shares on a grid from 0 to `most`.
void each_of_grid(std::size_t count, double most,
                  const std::function<void(std::vector<double>&)>& f,
                  std::vector<double> shares = {}) {
  constexpr int kSteps = 6;
  if (shares.size() == count) return f(shares);
  for (int step = 0; step <= kSteps; ++step) {
    shares.push_back(most * step / kSteps);
    each_of_grid(count, most, f, shares);
    shares.pop_back();
  }
}

TEST(WeightSkips, AreBetterThanAllOfAGridAndSkipNoMore) {
  EXPECT_TRUE(rc::check([] {
    const int stages = *rc::gen::inRange(1, 4);
    const Layout layout = straight(stages, *rc::gen::inRange(1, 7));
    const Plan plan = make_plan(layout, any_schedule());
    const Costs costs = random_costs(layout);
    const double most = *rc::gen::inRange(0, 11) / 10.0;
    const WeightSkips found = skip_weights(plan, layout, costs, most);
    const double sum = std::accumulate(found.share.begin(), found.share.end(), 0.0);
    const double near = 1e-7 * found.before;
    RC_ASSERT(std::abs(found.after - found.bound) < near);
    each_of_grid(found.share.size(), most, [&](std::vector<double>& shares) {
      const double time = makespan_of(plan, layout, costs, shares);
      RC_ASSERT(found.after <= time + near);
      if (time <= found.after + near)
        RC_ASSERT(sum <= std::accumulate(shares.begin(), shares.end(), 0.0) + 1e-5);
    });
  }));
}

TEST(WeightSkips, AreInRangeAndNeverSlowerAnywhere) {
  EXPECT_TRUE(rc::check([] {
    const auto layouts = odd_layouts();
    const Layout layout = *rc::gen::arbitrary<bool>()
                              ? layouts[*rc::gen::inRange<std::size_t>(0, layouts.size())].second
                              : straight(*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 17));
    const Plan plan = make_plan(layout, *rc::gen::element<std::string_view>("gpipe", "1f1b"));
    Costs costs = random_costs(layout);
    costs.boundary_bytes = 1;
    costs.local.latency = *rc::gen::inRange(0, 3) / 4.0;
    costs.local.bandwidth = *rc::gen::inRange(1, 9);
    if (*rc::gen::arbitrary<bool>()) {  // two ranks of a host share its link
      for (int rank = 0; rank < rank_count(layout); ++rank) costs.hosts.push_back(rank / 2);
      costs.remote = {.latency = 0.5, .bandwidth = *rc::gen::inRange(1, 9) / 4.0};
    }
    const WeightSkips found = skip_weights(plan, layout, costs, 0.9);
    RC_ASSERT(std::ssize(found.share) == layout.stage_count());
    for (const double share : found.share) RC_ASSERT(share >= 0 && share <= 0.9);
    RC_ASSERT(found.after <= found.before);
    RC_ASSERT(found.after == makespan_of(plan, layout, costs, found.share));
  }));
}

TEST(WeightSkips, OfManyStagesReachTheirBound) {
  // Paths through equal stages bind together by the dozen.
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  const Entry<Schedule>& schedule = find_schedule("interleaved-1f1b");
  for (const bool equal : {true, false}) {
    const Layout layout = folded(schedule, 8, 32, 2);
    const Plan plan = make_plan(layout, schedule.name);
    Costs costs = unit_costs(layout);
    costs.local.latency = 0.05;
    for (StageCosts& stage : costs.stages)
      if (!equal)
        stage = {.forward = seconds(random), .input = seconds(random), .weight = seconds(random)};
    const WeightSkips found = skip_weights(plan, layout, costs, 0.8);
    EXPECT_NEAR(found.after, found.bound, 1e-6 * found.before);
    EXPECT_LT(found.after, 0.8 * found.before);
    for (int i = 0; i < 300; ++i) {
      std::vector<double> shares = found.share;
      for (double& share : shares)
        share = std::clamp(share + 0.1 * (seconds(random) - 1), 0.0, 0.8);
      EXPECT_GE(makespan_of(plan, layout, costs, shares), found.after - 1e-6 * found.before);
    }
  }
}

TEST(WeightSkips, OfOneStageReachThePublishedLimit) {
  // F = I = W and at most 0.9: 3 / (3 - 0.9).
  const Layout layout = straight(1, 4);
  const WeightSkips found =
      skip_weights(make_plan(layout, "1f1b"), layout, unit_costs(layout), 0.9);
  EXPECT_NEAR(found.before / found.after, 1.4286, 1e-4);
  EXPECT_NEAR(found.share[0], 0.9, 1e-7);
}

TEST(WeightSkips, LeaveAStageAloneThatIsNeverCritical) {
  const Layout layout = straight(3, 8);
  Costs costs = unit_costs(layout);
  costs.stages[1] = {.forward = 0.01, .input = 0.01, .weight = 0.01};
  const Plan plan = make_plan(layout, "zb-h1");
  const WeightSkips found = skip_weights(plan, layout, costs, 0.5);
  EXPECT_EQ(found.share[1], 0);
  EXPECT_GT(found.share[0], 0);
  EXPECT_LT(found.after, found.before);
}

TEST(WeightSkips, AreTheSameOnReplicas) {
  const Layout layout = make_layout({{0, 2}, {2, 3}}, {2, 2}, 8, 8);
  Costs costs = unit_costs(layout);
  costs.stages[1].weight = 3;  // on one replica alone
  const WeightSkips found = skip_weights(make_plan(layout, "1f1b"), layout, costs, 0.5);
  ASSERT_EQ(found.share.size(), 4U);
  EXPECT_EQ(found.share[0], found.share[2]);
  EXPECT_EQ(found.share[1], found.share[3]);
  EXPECT_GT(found.share[1], 0);
}

}  // namespace
}  // namespace concertina
