// 10,000 random edits of valid schedules: each is rejected, or trains to the bits of 1F1B.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "core/error.h"
#include "parallel/comm/watchdog.h"
#include "parallel/generate/passes.h"
#include "tests/parallel_plan/random_plans.h"
#include "tests/parallel_plan/rendezvous.h"
#include "tests/parallel_runtime/layouts.h"
#include "tests/parallel_runtime/tiny_model.h"

namespace concertina {
namespace {

constexpr int kEditsInAll = 10000, kEditedLeaves = 2;

struct Base {
  std::string name;
  Layout layout;
  int microbatches = 1;
  Plan plan;
};

Limits limits_of(const Base& base) {
  Limits limits;
  limits.leaf_microbatches = base.microbatches / kEditedLeaves;
  return limits;
}

/// Splits each B into I now and W at least one compute action later.
Plan weights_one_action_later(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<Action> result, weights;
    for (const Action& action : row) {
      const bool backward = action.kind == Kind::B;
      result.push_back(action);
      if (backward) result.back().kind = Kind::I;
      if (!is_compute(action.kind) || (weights.empty() && !backward)) continue;
      result.insert(result.end(), weights.begin(), weights.end());
      weights.clear();
      if (backward) weights.push_back({Kind::W, action.stage, action.microbatch});
    }
    result.insert(result.end(), weights.begin(), weights.end());
    row = std::move(result);
  }
  return plan;
}

/// Delays each SEND by one action where that is valid, so that one more edit can use up the buffers
/// of messages without a reply.
Plan delay_sends(Plan plan, const Layout& layout, const Limits& limits) {
  for (std::vector<Action>& row : plan.rows)
    for (std::size_t i = row.size() - 1; i-- > 0;) {
      if (!is_send(row[i].kind)) continue;
      std::swap(row[i], row[i + 1]);
      if (check(plan, layout, limits)) std::swap(row[i], row[i + 1]);
    }
  return plan;
}

/// Returns some layouts for any schedule, and those of this schedule.
std::vector<NamedLayout> layouts(const Schedule& schedule, int m) {
  const auto over = [&](const std::vector<int>& ranks) {
    return Layout{{pipeline_over(ranks, kTinyUnits, 0, m)}};
  };
  std::vector<NamedLayout> result{{"p=4", 4, over({0, 1, 2, 3})},
                                  {"interleaved", 2, over({0, 1, 0, 1})},
                                  {"V", 2, over({0, 1, 1, 0})},
                                  {"opposite",
                                   2,
                                   {{pipeline_over({0, 1}, kTinyUnits, 0, m / 2),
                                     pipeline_over({1, 0}, kTinyUnits, m / 2, m)}}}};
  for (const int p : {2, 4})
    if (p * schedule.chunks.default_value <= kTinyUnits && p % schedule.rank_step == 0)
      result.push_back(
          {fmt::format("its own p={}", p), p, folded(schedule, p, kTinyUnits, m, kEditedLeaves)});
  return result;
}

/// Returns every schedule at every layout that it supports, with and without frozen units.
std::vector<Base> bases() {
  std::vector<Base> result;
  std::set<std::string> used;
  for (const Entry<Schedule>& schedule : schedules()) {
    for (const auto& [m, frozen] : {std::pair{4, 0}, {6, 0}, {4, 1}, {6, 2}}) {
      for (NamedLayout at : layouts(schedule.value, m)) {
        at.layout.frozen_units = frozen;
        const std::string name =
            fmt::format("{} {} m={}, {} frozen", schedule.name, at.name, m, frozen);
        try {
          const Plan compute =
              make_plan(at.layout, schedule.name, {.transfers = false, .reduction = false});
          for (const Plan& plan : {pair_overlaps({compute, at.layout}).plan,
                                   weights_one_action_later(compute), compute})
            result.push_back({name, at.layout, m, add_reduction(add_transfers({plan, at.layout}))});
          Base late = result.back();
          late.plan = delay_sends(late.plan, late.layout, limits_of(late));
          result.push_back(late);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Exit::bad_input) << name << ": " << error.message();
          continue;
        }
        used.emplace(schedule.name);
      }
    }
  }
  EXPECT_EQ(used.size(), schedules().size()) << "a schedule without a layout here";
  return result;
}

class Mutations : public ::testing::Test {
 protected:
  Plan edited(const Base& base, Edit kind) {
    for (;;)
      if (Plan plan = edit(base.plan, kind, random_); plan != base.plan) return plan;
  }

  /// The machine of rendezvous.h must confirm what was rejected.
  bool machine_runs(const Base& base, const Plan& plan) {
    using rendezvous::Machine, rendezvous::Outcome, rendezvous::Wire;
    for (const Wire wire : {Wire::pairs, Wire::stream})
      if (Machine(plan, base.layout, wire, limits_of(base).leaf_microbatches).run(random_) !=
          Outcome::runs)
        return false;
    return true;
  }

  void expect_same_bits(const Base& base, const Plan& plan) {
    const int frozen = base.layout.frozen_units;
    const auto [entry, fresh] = expected_.try_emplace({base.microbatches, frozen});
    if (fresh) {
      const Layout one{{pipeline_over({0}, kTinyUnits, 0, base.microbatches)}, frozen};
      entry->second = run_tiny(make_plan(one, "1f1b"), one, base.microbatches, kEditedLeaves);
    }
    watchdog_.beat();
    at_work_ = to_text(plan);
    try {
      EXPECT_TRUE(run_tiny(plan, base.layout, base.microbatches, kEditedLeaves) == entry->second)
          << base.name << ": the bits differ\n"
          << at_work_;
    } catch (const std::exception& error) {
      ADD_FAILURE() << base.name << ": " << error.what() << "\n" << at_work_;
    }
  }

  std::mt19937 random_{20240613};
  std::map<std::pair<int, int>, TinyResult> expected_;  // by microbatches and frozen units
  std::string at_work_;
  /// A hang ends the test and prints the plan.
  Watchdog watchdog_{0, std::chrono::minutes(2), [this](const std::string&) {
                       std::printf("hangs, though it was accepted:\n%s", at_work_.c_str());
                       std::fflush(stdout);
                       std::_Exit(1);
                     }};
};

TEST_F(Mutations, AreRefusedOrRunToTheSameBits) {
  const std::vector<Base> all = bases();
  for (const Base& base : all) expect_same_bits(base, base.plan);
  int accepted = 0;
  for (int i = 0; i < kEditsInAll && !HasFailure(); ++i) {
    const Base& base = all[static_cast<std::size_t>(i) % all.size()];
    const Plan plan = edited(base, kEdits[random_() % kEdits.size()]);
    const auto violation = check(plan, base.layout, limits_of(base));
    if (violation) {
      EXPECT_FALSE(machine_runs(base, plan))
          << base.name << ", rejected without need: " << violation->text << "\n"
          << to_text(plan);
    } else {
      ++accepted;
      expect_same_bits(base, plan);
    }
  }
  EXPECT_GT(accepted, kEditsInAll * 3 / 100);
}

}  // namespace
}  // namespace concertina
