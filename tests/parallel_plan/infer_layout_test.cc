// What the rows of a file say about its layout, and which action an error points to if they
// disagree.
#include "parallel/plan/infer_layout.h"

#include <gtest/gtest.h>

#include "parallel/plan/plan_grid.h"
#include "tests/errors.h"

namespace concertina {
namespace {

/// Expects an error with `rule`, at the action in brackets of `grid`, with `why` in the text.
void expect_refused(const std::string& text, Rule rule, const std::string& why,
                    const std::string& grid) {
  SCOPED_TRACE(text);
  const Plan plan = parse_plan(text, "x.csv");
  try {
    infer_layout(plan, "x.csv");
    ADD_FAILURE() << "accepted";
  } catch (const RefusedPlan& refused) {
    const Violation& violation = refused.violation();
    EXPECT_EQ(name_of(violation.rule), name_of(rule));
    expect_has(violation.text, why);
    expect_has(grid_around(plan, violation.places), grid);
    EXPECT_EQ(refused.where(), "x.csv");
  }
}

TEST(InferLayout, OfOnePipeline) {
  const Layout v = infer_layout(parse_plan("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv"), "v.csv");
  ASSERT_EQ(v.pipelines.size(), 1u);
  EXPECT_EQ(v.pipelines[0].stages,
            (std::vector<StagePlacement>{{0, 0, 1}, {1, 1, 2}, {1, 2, 3}, {0, 3, 4}}));
  EXPECT_EQ(v.pipelines[0].microbatches(), 1);
}

TEST(InferLayout, OfSeveralPipelines) {
  const std::string text =
      "0F0,3F1,3B1,0B0,4F2,4B2\n"
      "1F0,2F1,2B1,1B0\n";
  const Layout layout = infer_layout(parse_plan(text, "x.csv"), "x.csv");
  EXPECT_EQ(layout,
            (Layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 1}, Pipeline{{{1, 0, 1}, {0, 1, 2}}, 1, 2},
                     Pipeline{{{0, 0, 1}}, 2, 3}}}));
}

TEST(InferLayout, NamesAnActionTooMany) {
  const std::string other = "1F0,1B0,1F1,1B1\n";
  for (const std::string m : {"2", "7", "999999999"})
    expect_refused("0F0,0F1,0B0,0B1,0F" + m + "\n" + other, Rule::range,
                   "rank 0 action 4 0F" + m + " is superfluous", "[0F" + m + "]");
  expect_refused("0F0,0F1,0B0,0B1,2F0\n" + other, Rule::range, "rank 0 action 4 2F0 is superfluous",
                 "[2F0]");
  // Also in the first of two opposite pipelines, where the microbatches of the next one begin.
  expect_refused(
      "0F0,0F1,0F2,0B0,0B1,0B2,0F3,3F3,3F4,3F5,3B3,3B4,3B5\n"
      "2F3,2F4,2F5,2B3,2B4,2B5,1F0,1F1,1F2,1B0,1B1,1B2\n",
      Rule::range, "rank 0 action 6 0F3 is superfluous", "[0F3]");
}

TEST(InferLayout, NamesAStageOnTwoRanks) {
  expect_refused("0F0,0F1,0B0,0B1,1F1\n1F0,1B0,1F2,1B2\n", Rule::placement,
                 "rank 0 action 4 1F1: stage 1 is on rank 1, see action 0 1F0", "[1F1]");
  expect_refused("0F0,0B0\n0F1,0B1\n", Rule::placement, "rank 1 action 0 0F1", "[0F1]");
}

TEST(InferLayout, NamesTheActionBehindAGap) {
  expect_refused("0F0,0B0\n2F0,2B0\n", Rule::range, "rank 1 action 0 2F0: stage 1 has no forward",
                 "[2F0]");
  expect_refused("0F0,0F2,0B0,0B2\n1F0,1B0,1F2,1B2\n", Rule::range,
                 "rank 0 action 1 0F2: microbatch 1 has no forward", "[0F2]");
  expect_refused("0F999999999,0B0\n", Rule::range, "microbatch 1 has no forward", "[0F999999999]");
  expect_refused("0F0,0B0\n1F0,1B0\n0B0\n", Rule::shape, "rank 2 has no stage", "[0B0]");
  expect_refused("0B0\n", Rule::cover, "no forward", "");
}

/// A row that ends early has no superfluous action: check() reports what is missing.
TEST(InferLayout, LeavesWhatIsMissingToTheChecker) {
  const Layout layout =
      infer_layout(parse_plan("0F0,0F1,0F2,0B0,0B1,0B2\n1F0\n", "x.csv"), "x.csv");
  EXPECT_EQ(layout, (Layout{{Pipeline{{{0, 0, 1}, {1, 1, 2}}, 0, 3}}}));
  const Layout one = infer_layout(parse_plan("0F1,0B0,0B1\n", "x.csv"), "x.csv");
  EXPECT_EQ(one, (Layout{{Pipeline{{{0, 0, 1}}, 0, 2}}}));
}

}  // namespace
}  // namespace concertina
