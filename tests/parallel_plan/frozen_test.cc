// Plans with a frozen prefix of units: every schedule, layout and frontier.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parallel/generate/passes.h"
#include "parallel/plan/plan_graph.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

struct Case {
  std::string name;
  Layout layout, whole;  // whole: the same without frozen units
  Plan plan, unfrozen;
};

/// Adds cases for every frontier of a layout.
void add_cases(const Layout& whole, std::string_view schedule, std::vector<Case>& cases) {
  const Plan unfrozen = make_plan(whole, schedule);
  Layout layout = whole;
  for (int frozen = 1; frozen < whole.pipelines[0].stages.back().last_unit; ++frozen) {
    layout.frozen_units = frozen;
    cases.push_back({fmt::format("{}, {} frozen of {}", schedule, frozen, to_toml(whole)), layout,
                     whole, make_plan(layout, schedule), unfrozen});
  }
}

/// Returns every schedule on matching layouts, with one and two units per stage.
std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const Entry<Schedule>& schedule : schedules()) {
    for (const int p : {2, 3, 4})
      for (const int m : std::set{p, 2 * p, 4 * p, 7}) {
        const Folding folding = folding_of(schedule, 0);
        if (p % folding.rank_step != 0 || m < folding.pipelines()) continue;
        if (schedule.value.searched && p * m > 8) continue;  // slow
        add_cases(folded(schedule, p, m), schedule.name, cases);
        if (p == 4 || schedule.value.searched) continue;
        Layout wide = folded(schedule, p, 2 * m, 0, 2);
        for (Pipeline& pipeline : wide.pipelines)
          for (StagePlacement& stage : pipeline.stages) stage.first_unit *= 2, stage.last_unit *= 2;
        add_cases(wide, schedule.name, cases);
      }
    if (schedule.value.any_layout && !schedule.value.searched)
      for (const auto& [name, layout] : odd_layouts()) add_cases(layout, schedule.name, cases);
  }
  return cases;
}

template <class Visit>
void each_case(Visit visit) {
  static const std::vector<Case> cases = make_cases();
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    visit(one);
  }
}

int last_unit(const Layout& layout, int stage) {
  return layout.stage(stage).last_unit;
}

TEST(Frozen, PlansRunForwardAloneBelowTheFrontier) {
  each_case([](const Case& one) {
    const auto& [name, layout, whole, plan, unfrozen] = one;
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      std::vector<Action> forwards, all_forwards;
      for (const Action& action : plan.rows[rank]) {
        if (action.kind == Kind::F) forwards.push_back(action);
        if (action.kind == Kind::STEP) continue;
        const bool frozen = last_unit(layout, action.stage) <= layout.frozen_units;
        if (action.kind == Kind::SEND_B) {
          EXPECT_GT(last_unit(layout, action.stage - 1), layout.frozen_units);
        }
        EXPECT_TRUE(!frozen || action.kind == Kind::F || action.kind == Kind::SEND_F ||
                    action.kind == Kind::RECV_F)
            << to_text(action);
      }
      for (const Action& action : unfrozen.rows[rank])
        if (action.kind == Kind::F) all_forwards.push_back(action);
      EXPECT_EQ(forwards, all_forwards);
    }
  });
}

/// A frontier with no stage entirely below it changes only which gradients are sent.
TEST(Frozen, AStageWithTheFrontierInsideTrainsItsUnitsAbove) {
  Layout layout = make_layout({{0, 3}, {3, 6}}, {2, 1}, 4, 4);
  const Plan unfrozen = make_plan(layout, "1f1b");
  layout.frozen_units = 2;
  EXPECT_EQ(make_plan(layout, "1f1b"), unfrozen);
  layout.frozen_units = 5;
  EXPECT_EQ(to_text(make_plan(layout, "1f1b")),
            "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0F3,0SEND_F3,STEP\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1F1,1RECV_F2,1B1,1F2,1RECV_F3,1B2,1F3,1B3,1REDUCE_GRAD,"
            "STEP\n");
}

TEST(Frozen, NothingIsSavedBelowTheFrontier) {
  each_case([](const Case& one) {
    for (const RowMemory& rank : plan_memory(one.plan, one.layout)) {
      for (const StageSlots& stage : rank.stages)
        if (last_unit(one.layout, stage.stage) <= one.layout.frozen_units) {
          EXPECT_EQ(stage.saved, 0);
          EXPECT_EQ(stage.grads, 0);
        }
      EXPECT_LE(rank.frozen_outputs, kSendBuffers);
    }
  });
}

/// The step is not longer, and no rank stores more.
TEST(Frozen, PlansTakeNoMoreThanUnfrozenOnes) {
  each_case([](const Case& one) {
    const Timeline frozen = simulate(one.plan, one.layout, unit_costs(one.layout));
    const Timeline full = simulate(one.unfrozen, one.whole, unit_costs(one.whole));
    EXPECT_LE(frozen.makespan, full.makespan);
    for (std::size_t rank = 0; rank < full.busy.size(); ++rank) {
      EXPECT_LE(frozen.busy[rank], full.busy[rank]);
      EXPECT_LE(frozen.peak_activations[rank], full.peak_activations[rank]);
    }
  });
}

TEST(Frozen, APlanOfTheWholeModelIsRefusedAndCompletedFromAFile) {
  Layout layout = folded(find_schedule("zb-h1"), 3, 6);
  for (const bool transfers : {false, true}) {
    const Limits parts{.transfers = transfers, .reduction = false};
    layout.frozen_units = 0;
    const Plan whole = make_plan(layout, "zb-h1", parts);
    layout.frozen_units = 2;
    const auto violation = check(whole, layout, parts);
    ASSERT_TRUE(violation.has_value());
    EXPECT_EQ(violation->rule, Rule::cover);
    expect_has(violation->text, "frozen");
    const Plan plan = run_passes({whole, "", "file"}, layout);
    EXPECT_FALSE(check(plan, layout).has_value());
    EXPECT_EQ(run_passes({drop_frozen(whole, layout), "", "file"}, layout), plan);
  }
}

TEST(Frozen, TheCheckerWantsWhatIsDueAndNoMore) {
  Layout layout = straight(3, 3);
  layout.frozen_units = 2;
  const Plan plan = make_plan(layout, "1f1b");
  const auto with = [&](int rank, const Action& action) {
    Plan changed = plan;
    changed.rows[rank].insert(changed.rows[rank].end() - 1, action);
    return check(changed, layout).value();
  };
  expect_has(with(0, {Kind::B, 0, 0}).text, "only runs forward");
  expect_has(with(1, {Kind::W, 1, 2}).text, "only runs forward");
  expect_has(with(1, {Kind::RECV_B, 1, 0}).text, "only runs forward");
  expect_has(with(1, {Kind::REDUCE, 1, -1}).text, "no gradient");
  expect_has(with(2, {Kind::SEND_B, 2, 0}).text, "needs no gradient");
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i) {
      Plan changed = plan;
      changed.rows[rank].erase(changed.rows[rank].begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(check(changed, layout).has_value()) << to_text(plan.rows[rank][i]);
    }
}

TEST(Frozen, APlanThatNeedsMoreSendBuffersThanThereAreIsADeadlock) {
  Layout layout = straight(2, 3);
  layout.frozen_units = 1;
  const Plan late = parse_plan(
      "0F0,0F1,0F2,0SEND_F0,0SEND_F1,0SEND_F2,STEP\n"
      "1RECV_F0,1F0,1B0,1RECV_F1,1F1,1B1,1RECV_F2,1F2,1B2,1REDUCE_GRAD,STEP\n",
      "text");
  const Violation violation = check(late, layout).value();
  EXPECT_EQ(violation.rule, Rule::send_buffer);
  expect_has(violation.text, "waits for the send buffer of");
}

}  // namespace
}  // namespace concertina
