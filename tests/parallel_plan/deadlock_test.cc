// Compares the checker's verdict with a machine that runs the plan (rendezvous.h): on small plans
// in every possible order, and with an independent computation of the shortest cycle.
#include "parallel/plan/deadlock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "parallel/generate/passes.h"
#include "parallel/plan/check.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"
#include "tests/parallel_plan/random_plans.h"
#include "tests/parallel_plan/rendezvous.h"

namespace concertina {
namespace {

using rendezvous::Machine;
using rendezvous::Outcome;
using rendezvous::Wire;

constexpr std::size_t kMostStates = 200000;

std::vector<Layout> small_layouts() {
  return {straight(2, 2), straight(3, 2), over({0, 1, 1, 0}, 2), over({0, 1, 0, 1}, 1),
          opposite(2, 1)};
}

std::string kind_of(Outcome pairs, Outcome stream) {
  if (pairs == Outcome::wrong) return "wrong";
  if (pairs == Outcome::hangs) return "hangs";
  return stream == Outcome::runs ? "runs" : "hangs on a stream";
}

bool is_cycle(const Violation& violation) {
  return violation.rule == Rule::deadlock || violation.rule == Rule::stream_order ||
         violation.rule == Rule::send_buffer;
}

std::string kind_of(const std::optional<Violation>& violation) {
  if (!violation) return "runs";
  if (!is_cycle(*violation)) return "wrong";
  return violation->text.starts_with("without buffering") ? "hangs" : "hangs on a stream";
}

/// Compares both verdicts, and returns the common one.
std::string agree(const Plan& plan, const Layout& layout, int leaf_microbatches) {
  Limits limits;
  limits.leaf_microbatches = leaf_microbatches;
  const auto violation = check(plan, layout, limits);
  const Machine pairs(plan, layout, Wire::pairs, leaf_microbatches);
  const Machine stream(plan, layout, Wire::stream, leaf_microbatches);
  const std::string verdict = kind_of(pairs.explore(kMostStates), stream.explore(kMostStates));
  EXPECT_EQ(kind_of(violation), verdict) << (violation ? violation->text : "accepted") << "\n"
                                         << to_text(plan);
  if (violation && is_cycle(*violation)) {
    const auto lines = std::count(violation->text.begin(), violation->text.end(), '\n');
    EXPECT_EQ(lines, (verdict == "hangs" ? pairs : stream).shortest_cycle())
        << violation->text << "\n"
        << to_text(plan);
    EXPECT_FALSE(violation->places.empty());
  }
  return verdict;
}

TEST(Deadlock, VerdictIsThatOfTheMachineOnRandomPlans) {
  std::mt19937 random(1);
  std::map<std::string, int> verdicts;
  const std::vector<Layout> layouts = small_layouts();
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    const Layout& layout = layouts[random() % layouts.size()];
    ++verdicts[agree(random_plan(layout, random), layout, 1 + static_cast<int>(random() % 2))];
  }
  for (const auto& [verdict, count] : verdicts) RecordProperty(verdict, count);
  for (const char* verdict : {"runs", "wrong", "hangs", "hangs on a stream"})
    EXPECT_GT(verdicts[verdict], 100) << verdict;
}

/// Moves some transfers to other places in their rows.
Plan with_moved_transfers(Plan plan, std::mt19937& random) {
  for (auto moves = 1 + random() % 5; moves > 0; --moves) {
    std::vector<Action>& row = plan.rows[random() % plan.rows.size()];
    const auto from = row.begin() + static_cast<int>(random() % row.size());
    if (!is_transfer(from->kind)) continue;
    const auto near =
        std::clamp<std::ptrdiff_t>(from - row.begin() - 4 + random() % 9, 0, std::ssize(row) - 1);
    const Action moved = *from;
    row.erase(from);
    row.insert(row.begin() + near, moved);
  }
  return plan;
}

TEST(Deadlock, VerdictIsThatOfTheMachineOnLargerPlans) {
  std::mt19937 random(3);
  std::map<std::string, int> verdicts;
  for (const Layout& layout :
       {straight(2, 4), straight(3, 5), two_and_one(), opposite(3, 3), over({0, 1, 1, 0}, 4)}) {
    for (const std::string_view name : {"gpipe", "1f1b"}) {
      const Plan plan = make_plan(layout, name);
      for (int i = 0; i < 200; ++i) {
        const Plan moved = with_moved_transfers(plan, random);
        const std::string verdict = kind_of(Machine(moved, layout, Wire::pairs).run(random),
                                            Machine(moved, layout, Wire::stream).run(random));
        EXPECT_EQ(kind_of(check(moved, layout)), verdict) << to_text(moved);
        ++verdicts[verdict];
      }
    }
  }
  EXPECT_GT(verdicts["runs"], 50);
  EXPECT_GT(verdicts["hangs on a stream"], 50);
}

/// Rank 0 begins with its second stage, which needs the first ones of all ranks.
TEST(Deadlock, ALongCycleIsShortened) {
  constexpr int kRanks = 500;
  std::vector<int> ranks;
  for (int stage = 0; stage < 2 * kRanks; ++stage) ranks.push_back(stage % kRanks);
  const Layout layout = over(ranks, 1);
  Plan plan;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Action first{Kind::F, rank, 0}, second{Kind::F, kRanks + rank, 0};
    plan.rows.push_back({rank == 0 ? second : first,
                         rank == 0 ? first : second,
                         {Kind::B, kRanks + rank, 0},
                         {Kind::B, rank, 0}});
  }
  const auto violation = check(plan, layout, limits_of(plan));
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->rule, Rule::deadlock);
  EXPECT_LT(violation->text.size(), 2000U);
  EXPECT_LT(violation->places.size(), 50U);
  expect_has(violation->text, "\n... 490 more\n");
  expect_has(violation->text, "which is itself waiting");
  expect_has(violation->text, "which comes after action 0 500F0");
}

}  // namespace
}  // namespace concertina
