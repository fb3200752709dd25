// The largest plans: making, checking and simulating one for 64 ranks with 4 stages each and 512
// microbatches takes at most two seconds and less than a gigabyte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"
#include "tests/own_figures.h"

namespace concertina {
namespace {

constexpr int kRanks = 64, kMicrobatches = 512, kChunks = 4;
constexpr double kMostSeconds = 2, kMostBytes = 1e9;  // on one core, in an optimized build

Layout large_layout() {
  return make_layout(single_units(kRanks * kChunks), Grid{kRanks, 1}, kMicrobatches, 16, kChunks);
}

std::size_t action_count(const Plan& plan) {
  std::size_t actions = 0;
  for (const std::vector<Action>& row : plan.rows) actions += row.size();
  return actions;
}

TEST(LargePlans, AreMadeCheckedAndSimulatedInSeconds) {
  const Layout layout = large_layout();
  const double resident = resident_bytes(), start = cpu_seconds();
  const Plan plan = make_plan(layout, "interleaved-1f1b");
  const double made = cpu_seconds();
  const auto violation = check(plan, layout, {.leaf_microbatches = kMicrobatches / 16});
  const double checked = cpu_seconds();
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  const double simulated = cpu_seconds(), bytes = peak_bytes() - resident;

  EXPECT_FALSE(violation) << violation->text;
  // Forwards and backwards pass once through all ranks; then no rank waits.
  EXPECT_DOUBLE_EQ(timeline.makespan, 3.0 * (kMicrobatches * kChunks + kRanks - 1));
  std::printf("%zu actions: made in %.3f s, check %.3f s, simulate %.3f s, %.0f MB\n",
              action_count(plan), made - start, checked - made, simulated - checked, bytes / 1e6);
  if (!kOptimised) GTEST_SKIP() << "no limits for builds without optimization";
  EXPECT_LT(simulated - start, kMostSeconds);
  EXPECT_LT(bytes, kMostBytes);
}

TEST(LargePlans, AreRefusedAsQuickly) {
  const Layout layout = large_layout();
  Plan plan = make_plan(layout, "1f1b");
  // Rank 16 posts a gradient before an output, rank 17 that gradient after the output.
  std::vector<Action>& row = plan.rows[16];
  const auto is = [](Kind kind) { return [=](const Action& one) { return one.kind == kind; }; };
  const auto send = std::find_if(row.begin() + std::ssize(row) / 2, row.end(), is(Kind::SEND_F));
  const auto receive = std::find_if(send, row.end(), is(Kind::RECV_B));
  std::rotate(send, receive, receive + 1);
  const double start = cpu_seconds();
  const auto violation = check(plan, layout);
  const double seconds = cpu_seconds() - start;
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->rule, Rule::stream_order);
  EXPECT_LT(std::count(violation->text.begin(), violation->text.end(), '\n'), 8);
  std::printf("refused in %.3f s: %s\n", seconds, violation->text.c_str());
  EXPECT_LT(seconds, kOptimised ? kMostSeconds : 1000);
}

}  // namespace
}  // namespace concertina
