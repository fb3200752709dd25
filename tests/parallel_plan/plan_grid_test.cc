// The picture of a place in a plan: its contents, and that it stays small.
#include "parallel/plan/plan_grid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "parallel/generate/passes.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

TEST(PlanGrid, MarksThePlacesAndLeavesOutWhatIsFar) {
  const Plan plan = make_plan(straight(2, 8), "gpipe", {.transfers = false, .reduction = false});
  EXPECT_EQ(grid_around(plan, {{0, 0}, {0, 15}, {1, 9}}),
            "rank 0     0:    [0F0]  0F1  0F2  0F3    ..12:  0B4  0B5  0B6  [0B7]\n"
            "rank 1     ..6:  1F6    1F7  1B0  [1B1]  1B2    1B3  1B4  ..\n");
  EXPECT_EQ(grid_around(plan, {{1, 2}}),
            "rank 0     0:  0F0  0F1  0F2    0F3  0F4  0F5  ..\n"
            "rank 1     0:  1F0  1F1  [1F2]  1F3  1F4  1F5  ..\n");
  EXPECT_EQ(grid_around(plan, {}), "");
}

TEST(PlanGrid, ShowsOnlyTheRanksInQuestionOfALargePlan) {
  const Plan plan = make_plan(straight(64, 64), "1f1b");
  const std::string grid = grid_around(plan, {{3, 100}, {40, 200}});
  EXPECT_EQ(std::count(grid.begin(), grid.end(), '\n'), 2);
  EXPECT_LT(grid.size(), 400U);
  EXPECT_TRUE(grid.starts_with("rank 3 ")) << grid;
}

TEST(PlanGrid, ShowsWhereAMissingActionBelongs) {
  const Plan plan = parse_plan("0F1,0B0,0B1\n", "text");
  const auto grid = [&](Place before) {
    return grid_around(plan, {{0, 1}}, Gap{{Kind::F, 0, 0}, before});
  };
  EXPECT_EQ(grid({0, 0}), "rank 0     0:  [+0F0]  0F1  [0B0]  0B1\n");
  EXPECT_EQ(grid({0, 3}), "rank 0     0:  0F1  [0B0]  0B1  [+0F0]\n");
  const Plan large = make_plan(straight(1, 8), "gpipe", {.transfers = false, .reduction = false});
  EXPECT_EQ(grid_around(large, {}, Gap{{Kind::W, 0, 0}, {0, 9}}),
            "rank 0     ..6:  0F6  0F7  0B0  [+0W0]  0B1  0B2  0B3  ..\n");
}

TEST(PlanGrid, IsPartOfARefusal) {
  const Plan plan = parse_plan("0F0\n", "text");
  const RefusedPlan refused(plan, {Rule::cover, "why", {{0, 0}}}, "who: ", "where");
  EXPECT_EQ(refused.message(), "who: why\nrank 0     0:  [0F0]");
  EXPECT_EQ(refused.code(), Exit::bad_input);
  EXPECT_EQ(refused.fix(), advice_of(Rule::cover));
  EXPECT_EQ(RefusedPlan(plan, {Rule::shape, "why"}, "", "where").message(), "why");
}

}  // namespace
}  // namespace concertina
