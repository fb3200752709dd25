// Skipped weight gradients, compared with all shares of a grid, and the policy's properties.
#include "parallel/policies/weight_skips.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "core/index.h"
#include "parallel/generate/assign.h"
#include "parallel/generate/passes.h"
#include "parallel/policies/freeze_rules.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

TEST(LinearProgram, PricesAreWorthTheBestVertex) {
  EXPECT_TRUE(rc::check([] {
    // Lines a x + b y = c, including the axes; every vertex is an intersection of two of them.
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
  // Beale's example, on which the largest-gain rule cycles; its optimum is 1/20.
  const LinearProgram beale{{{0.25, -60, -0.04, 9}, {0.5, -90, -0.02, 3}, {0, 0, 1, 0}},
                            {0, 0, 1},
                            {0.75, -150, 0.02, -6}};
  const auto prices = row_prices(beale);
  ASSERT_TRUE(prices.has_value());
  EXPECT_NEAR((*prices)[2], 0.05, 1e-9);
  EXPECT_FALSE(row_prices({{{-1, 1}}, {1}, {1, 0}}).has_value()) << "without a bound";
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

std::vector<double> same_bound(const Layout& layout, double most) {
  return std::vector<double>(at(layout.stage_count()), most);
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
    const WeightSkips found = skip_weights(plan, layout, costs, same_bound(layout, most));
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
    const WeightSkips found = skip_weights(plan, layout, costs, same_bound(layout, 0.9));
    RC_ASSERT(std::ssize(found.share) == layout.stage_count());
    for (const double share : found.share) RC_ASSERT(share >= 0 && share <= 0.9);
    RC_ASSERT(found.after <= found.before);
    RC_ASSERT(found.after == makespan_of(plan, layout, costs, found.share));
  }));
}

TEST(WeightSkips, OfManyStagesReachTheirBound) {
  // With equal stages, dozens of paths are critical at the same time.
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
    const WeightSkips found = skip_weights(plan, layout, costs, same_bound(layout, 0.8));
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
      skip_weights(make_plan(layout, "1f1b"), layout, unit_costs(layout), same_bound(layout, 0.9));
  EXPECT_NEAR(found.before / found.after, 1.4286, 1e-4);
  EXPECT_NEAR(found.share[0], 0.9, 1e-7);
}

/// F = I = W; unit 0 and the last one share a tensor, unit 3 has none.
Job skipping_job(int units) {
  Job job{.model = {}, .microbatches = 8, .leaves = 8};
  for (int u = 0; u < units; ++u) {
    UnitSpec& unit = job.model.units.emplace_back();
    unit.name = fmt::format("{:03}", u);
    unit.cost = {.forward_flops = 1, .input_flops = 1, .weight_flops = 1};
    if (u != 3)
      unit.parameters.push_back({.name = "weight", .shape = {8}, .init = {}, .shared = ""});
    if (u == 0 || u + 1 == units)
      unit.parameters.push_back({.name = "table", .shape = {8}, .init = {}, .shared = "table"});
  }
  return job;
}

TEST(SkipTurns, SkipAsManyEveryStepAndEachAsOften) {
  const ModelSpec model = skipping_job(12).model;
  const std::vector<Bucket> buckets = make_buckets(model);
  EXPECT_TRUE(rc::check([&] {
    std::vector<SkipGroup> groups{{{1, 2, 4, 5}, *rc::gen::inRange(0, 5)},
                                  {{6, 7, 8, 9, 10}, *rc::gen::inRange(0, 6)}};
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    SkipTurns turns(model, groups, seed), others(model, groups, seed);
    constexpr int kRound = 4 * 5;
    const std::int64_t first = 1 + kRound * *rc::gen::inRange(0, 1000);
    std::vector<int> count(buckets.size());
    for (std::int64_t step = first; step < first + kRound; ++step) {
      const SkippedBuckets flags = turns.of_step(step);
      for (const SkipGroup& group : groups)
        RC_ASSERT(std::ranges::count_if(group.units, [&](int unit) {
                    return flags[at(skipped_bucket(model, buckets, unit))];
                  }) == group.skipped);
      for (std::size_t b = 0; b < buckets.size(); ++b) count[b] += flags[b] ? 1 : 0;
    }
    for (const SkipGroup& group : groups)
      for (const int unit : group.units)
        RC_ASSERT(count[at(skipped_bucket(model, buckets, unit))] ==
                  kRound / std::ssize(group.units) * group.skipped);
    for (std::size_t b = 0; b < buckets.size(); ++b)
      if (buckets[b].name == "table") RC_ASSERT(count[b] == 0);
    const std::int64_t any = first + *rc::gen::inRange(0, kRound);
    const SkippedBuckets mine = turns.of_step(any), theirs = others.of_step(any);
    for (std::size_t b = 0; b < buckets.size(); ++b) RC_ASSERT(mine[b] == theirs[b]);
  }));
}

SkipPlan plan_of(const Job& job, const Request& request, double most) {
  OptionValues options = default_freeze_options();
  options["most_skipped"] = most;
  return lookup(freeze_policies(), "weights-only", "freeze policy", "freeze.policy")
      .plan_skips(job, assign(job, request), options);
}

TEST(WeightsOnly, PlansWholeUnitsThatAllTrainNowAndThen) {
  const Job job = skipping_job(12);
  for (const double most : {0.0, 0.3, 0.5, 0.9, 0.99})
    for (const auto& [pp, dp, schedule] : {std::tuple{1, 1, "1f1b"},
                                           {2, 1, "1f1b"},
                                           {4, 1, "zb-h1"},
                                           {2, 2, "gpipe"},
                                           {2, 1, "interleaved-1f1b"},
                                           {2, 1, "dualpipe"}}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", most, pp, dp, schedule));
      const SkipPlan plan =
          plan_of(job, {.world = pp * dp, .pp = pp, .dp = dp, .schedule = schedule}, most);
      std::set<int> seen;
      for (const SkipGroup& group : plan.groups) {
        EXPECT_LE(group.skipped, most * static_cast<double>(group.units.size()) + 1e-6);
        seen.insert(group.units.begin(), group.units.end());
      }
      EXPECT_EQ(seen, (std::set<int>{1, 2, 4, 5, 6, 7, 8, 9, 10}));
      EXPECT_GE(plan.step_ratio, plan.best_ratio - 0.05);  // rounding may skip more than planned
      EXPECT_LE(plan.step_ratio, 1);
      EXPECT_GE(plan.best_ratio, 1 - most / 3 - 1e-9);
    }
}

TEST(WeightsOnly, ReachesTheSharesOfTheProgram) {
  // One stage of 12 units, 9 of which can skip: with a share of 0.5, 4 do.
  const SkipPlan one = plan_of(skipping_job(12), {}, 0.5);
  ASSERT_EQ(one.groups.size(), 1U);
  EXPECT_EQ(one.groups[0].skipped, 4);
  EXPECT_NEAR(one.best_ratio, 1 - 0.5 * 9 / 36, 1e-8);
  EXPECT_NEAR(one.step_ratio, 1 - 4.0 / 36, 1e-9);
}

TEST(WeightsOnly, DecidesFromItsStepOn) {
  OptionValues options = default_freeze_options();
  options["skip_from"] = std::int64_t{10};
  const FreezeRules rules = make_freeze_rules("weights-only", options, 2, 2);
  FreezeState state;
  state.planned.groups = {{{0, 1}, 1}};
  FreezeRecord now{.step = 9, .loss = 1};
  now.grad_norm = {1, 1};
  EXPECT_FALSE(decide(rules, state, now).skips);
  now.step = 10;
  const FreezeDecision decision = decide(rules, state, now);
  EXPECT_TRUE(decision.skips);
  EXPECT_EQ(decision.frozen, 0);
  state = remember(rules, state, now, decision);
  EXPECT_TRUE(state.skips);
  EXPECT_EQ(state.planned.groups.size(), 1U);
  now.loss = std::nan("");
  EXPECT_TRUE(decide(rules, state, now).skips);
}

TEST(WeightSkips, AreTheSameOnReplicas) {
  const Layout layout = make_layout({{0, 2}, {2, 3}}, {2, 2}, 8, 8);
  Costs costs = unit_costs(layout);
  costs.stages[1].weight = 3;  // on only one replica
  const WeightSkips found =
      skip_weights(make_plan(layout, "1f1b"), layout, costs, same_bound(layout, 0.5));
  ASSERT_EQ(found.share.size(), 4U);
  EXPECT_EQ(found.share[0], found.share[2]);
  EXPECT_EQ(found.share[1], found.share[3]);
  EXPECT_GT(found.share[1], 0);
}

}  // namespace
}  // namespace concertina
