// A schedule that the project does not know: its file is in plugins/, its name in this folder's
// meson.build, and nothing else changes.
#include <gtest/gtest.h>

#include "parallel/generate/passes.h"
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

}  // namespace
}  // namespace concertina
