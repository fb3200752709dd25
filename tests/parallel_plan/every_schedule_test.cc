// Properties of every schedule in the registry; a new one is tested without new code here.
#include <gtest/gtest.h>

#include <set>

#include "parallel/passes.h"
#include "parallel/plan_memory.h"
#include "parallel/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

std::string text_of(const std::optional<Violation>& violation) {
  return violation ? violation->text : "accepted";
}

template <class Visit>
void each_straight_case(Visit visit) {
  for (const Entry<Generator>& schedule : schedules())
    for (const int p : {1, 2, 3, 4, 8})
      for (const int m : std::set{1, 2, p, 2 * p, 4 * p, 7}) {
        SCOPED_TRACE(fmt::format("{} p={} m={}", schedule.name, p, m));
        visit(schedule.name, p, m);
      }
}

TEST(EverySchedule, IsAccepted) {
  each_straight_case([](std::string_view name, int p, int m) {
    const Layout layout = straight(p, m);
    const Plan plan = make_plan(layout, name);
    EXPECT_EQ(text_of(check(plan, layout)), "accepted");
    const Plan compute = make_plan(layout, name, {.transfers = false, .reduction = false});
    EXPECT_EQ(text_of(check(compute, layout, limits_of(compute))), "accepted");
  });
}

TEST(EverySchedule, IsAcceptedOnEveryKindOfLayout) {
  for (const Entry<Generator>& schedule : schedules()) {
    for (const auto& [kind, layout] : odd_layouts()) {
      SCOPED_TRACE(fmt::format("{} on {}", schedule.name, kind));
      EXPECT_EQ(text_of(check(make_plan(layout, schedule.name), layout)), "accepted");
    }
  }
}

TEST(EverySchedule, ReadsBackFromItsText) {
  each_straight_case([](std::string_view name, int p, int m) {
    const Layout layout = straight(p, m);
    const Plan plan = make_plan(layout, name);
    EXPECT_EQ(parse_plan(to_text(plan), "text"), plan);
    EXPECT_EQ(infer_layout(plan, "text"), layout);
  });
}

TEST(EverySchedule, HasItsClosedFormBubble) {
  each_straight_case([](std::string_view name, int p, int m) {
    if (name != "gpipe" && name != "1f1b") return;
    const Layout layout = straight(p, m);
    for (const bool transfers : {true, false}) {
      const Plan plan = make_plan(layout, name, {.transfers = transfers});
      const Timeline timeline = simulate(plan, layout, unit_costs(layout));
      const double ideal = 3.0 * m;
      EXPECT_DOUBLE_EQ((timeline.makespan - ideal) / ideal, (p - 1.0) / m);
      EXPECT_DOUBLE_EQ(timeline.mean_bubble, (p - 1.0) / (m + p - 1.0));
    }
  });
}

TEST(EverySchedule, HasItsClosedFormPeakOfActivations) {
  each_straight_case([](std::string_view name, int p, int m) {
    const Layout layout = straight(p, m);
    const Plan plan = make_plan(layout, name);
    const std::vector<RowMemory> memory = plan_memory(plan, layout);
    Limits limits;
    for (int s = 0; s < p; ++s) {
      const int peak = name == "gpipe" ? m : name == "1f1b" ? std::min(m, p - s) : 1;
      EXPECT_EQ(memory[s].stages, (std::vector<StageSlots>{{s, peak, 0}}));
      limits.peak_activations.push_back(peak);
    }
    EXPECT_EQ(simulate(plan, layout, unit_costs(layout)).peak_activations, limits.peak_activations);
    EXPECT_EQ(text_of(check(plan, layout, limits)), "accepted");
    --limits.peak_activations.back();
    EXPECT_EQ(check(plan, layout, limits).value().rule, Rule::memory);
  });
}

TEST(EverySchedule, AddsGradientsOfALeafInOrder) {
  for (const Entry<Generator>& schedule : schedules()) {
    const Layout layout = straight(4, 16);
    for (const int leaf : {1, 2, 4, 16})
      EXPECT_NO_THROW(make_plan(layout, schedule.name, {.leaf_microbatches = leaf}));
  }
}

}  // namespace
}  // namespace concertina
