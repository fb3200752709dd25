// Plans as large as they get: checking and simulating 64 ranks with 4 stages each and 512
// microbatches, I and W apart and with all transfers, takes seconds and megabytes, not minutes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

constexpr int kRanks = 64, kMicrobatches = 512, kChunks = 4;
constexpr double kMostSeconds = 2, kMostBytes = 1e9;  // of one core, in an optimised build

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif

Layout large_layout() {
  std::vector<UnitRange> units;
  for (int s = 0; s < kRanks * kChunks; ++s) units.push_back({s, s + 1});
  return make_layout(units, Grid{kRanks, 1}, kMicrobatches, 16, kChunks);
}

/// Each W two backwards behind its I.
Plan split_backwards(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<Action> result, weights;
    for (const Action& action : row) {
      result.push_back(action);
      if (action.kind != Kind::B) continue;
      result.back().kind = Kind::I;
      weights.push_back({Kind::W, action.stage, action.microbatch});
      if (weights.size() > 2) result.push_back(weights[weights.size() - 3]);
    }
    result.insert(result.end(), weights.end() - 2, weights.end());
    row = std::move(result);
  }
  return plan;
}

/// Of this process, so that others on the machine do not count.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

TEST(LargePlans, AreCheckedAndSimulatedInSeconds) {
  const Layout layout = large_layout();
  const Plan compute = make_plan(layout, "1f1b", {.transfers = false, .reduction = false});
  const Plan plan = add_reduction(add_transfers(split_backwards(compute), layout), layout);
  std::size_t actions = 0;
  for (const std::vector<Action>& row : plan.rows) actions += row.size();

  const double start = cpu_seconds();
  const auto violation = check(plan, layout, {.leaf_microbatches = kMicrobatches / 16});
  const double checked = cpu_seconds();
  const double makespan = simulate(plan, layout, unit_costs(layout)).makespan;
  const double simulated = cpu_seconds();

  EXPECT_FALSE(violation) << violation->text;
  EXPECT_GE(makespan, 3.0 * kMicrobatches * kChunks);
  std::printf("%zu actions: check %.3f s, simulate %.3f s, peak of the process %.0f MB\n", actions,
              checked - start, simulated - checked, peak_bytes() / 1e6);
  if (!kOptimised) GTEST_SKIP() << "no bounds for builds that are not optimised";
  EXPECT_LT(simulated - start, kMostSeconds);
  EXPECT_LT(peak_bytes(), kMostBytes);
}

TEST(LargePlans, AreRefusedAsQuickly) {
  const Layout layout = large_layout();
  Plan plan = make_plan(layout, "1f1b");
  // Rank 16 posts a gradient ahead of an output, rank 17 that gradient behind the output.
  std::vector<Action>& row = plan.rows[16];
  const auto is = [](Kind kind) { return [=](const Action& one) { return one.kind == kind; }; };
  const auto send = std::find_if(row.begin() + std::ssize(row) / 2, row.end(), is(Kind::SEND_F));
  const auto receive = std::find_if(send, row.end(), is(Kind::RECV_B));
  std::rotate(send, receive, receive + 1);
  const double start = cpu_seconds();
  const auto violation = check(plan, layout);
  const double seconds = cpu_seconds() - start;
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->rule, Rule::deadlock);
  EXPECT_LT(std::count(violation->text.begin(), violation->text.end(), '\n'), 8);
  std::printf("refused in %.3f s: %s\n", seconds, violation->text.c_str());
  EXPECT_LT(seconds, kOptimised ? kMostSeconds : 1000);
}

}  // namespace
}  // namespace concertina
