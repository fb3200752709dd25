// A schedule and a freeze policy from outside: their files are in plugins/, their names in this
// folder's meson.build, and nothing else changes.
#include <gtest/gtest.h>

#include "parallel/generate/passes.h"
#include "parallel/policies/freeze_rules.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

TEST(Plugin, IsFoundByNameBesideTheBuiltInSchedules) {
  const auto names = names_of(schedules());
  EXPECT_EQ(names.front(), "gpipe");
  EXPECT_EQ(names.back(), "sequential");
}

TEST(Plugin, BecomesAPlanWithItsOwnFigures) {
  const Layout layout = straight(3, 4);
  const Plan plan = make_plan(layout, "sequential");
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  EXPECT_DOUBLE_EQ(timeline.makespan, 3 * 4 * 3.0);
  EXPECT_EQ(timeline.peak_activations, (std::vector{1, 1, 1}));
}

TEST(Plugin, FreezesByItsOwnOption) {
  EXPECT_EQ(names_of(freeze_policies()).back(), "halving");
  OptionValues options = default_freeze_options();
  options.at("part") = std::int64_t{4};
  const FreezeRules rules = make_freeze_rules("halving", options, 12, 12);
  FreezeRecord now{.step = 1};
  now.grad_norm.assign(12, 1.0);
  EXPECT_EQ(decide(rules, {}, now).frozen, 3);
}

}  // namespace
}  // namespace concertina
