// Layouts: which are valid, which grids fit, and the form used in configs.
#include "parallel/plan/layout.h"

#include <gtest/gtest.h>

#include "parallel/plan/fit_layout.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

template <class Call>
std::string refusal(Call call) {
  const Error error = input_error(call);
  EXPECT_FALSE(error.where().empty());
  EXPECT_FALSE(error.fix().empty());
  return error.message() + " | " + error.where() + " | " + error.fix();
}

std::string refusal(const Layout& layout, LayoutLimits limits = {3, 4, 6, 6}) {
  return refusal([&] { validate(layout, limits); });
}

TEST(Layout, AcceptsUnevenAndOppositePipelines) {
  validate(two_and_one(), {3, 4, 6, 6});
  validate(opposite(4, 3), {4, 4, 6, 2});
  validate(over({0, 1, 2, 2, 1, 0}, 6), {3, 6, 6, 1});
}

TEST(Layout, RefusesEachFaultWithItsPlace) {
  const Layout good = two_and_one();
  const auto with = [&](auto change) {
    Layout layout = good;
    change(layout);
    return refusal(layout);
  };
  expect_has(refusal(Layout{}), "no pipelines");
  expect_has(with([](Layout& l) { l.pipelines[1].stages.clear(); }), "pipeline 1 has no stages");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[1].rank = 3; }), "a rank in [0, 3)");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[1].rank = -1; }), "rank -1");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[1].last_unit = 2; }),
             "pipeline 0, stage 1 | at least one unit per stage");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[1].first_unit = 1; }),
             "units start at 1, but the previous stages end at 2");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[0].first_unit = 1; }), "units start at 1");
  expect_has(with([](Layout& l) { l.pipelines[1].stages[0].last_unit = 3; }),
             "but the model has 4 units");
  expect_has(with([](Layout& l) { l.pipelines[1].first_microbatch = 3; }),
             "[3, 6), expected to start at 4");
  expect_has(with([](Layout& l) { l.pipelines[1].first_microbatch = 5; }),
             "[5, 6), expected to start at 4");
  expect_has(with([](Layout& l) { l.pipelines[1].last_microbatch = 4; }),
             "the pipeline is empty: microbatches [4, 4)");
  expect_has(with([](Layout& l) { l.pipelines[1].last_microbatch = 5; }),
             "cover microbatches [0, 5)");
  expect_has(with([](Layout& l) { l.pipelines[1].last_microbatch = 7; }),
             "cover microbatches [0, 7)");
  expect_has(with([](Layout& l) { l.pipelines[0].stages[1].rank = 0; }), "rank 1 has no stage");
  expect_has(refusal(good, {4, 4, 6, 6}), "rank 3 has no stage");
  expect_has(refusal(good, {3, 4, 6, 2}), "[0, 4) split a leaf");
}

TEST(Layout, NumbersStagesThroughAllPipelines) {
  const Layout layout = two_and_one();
  EXPECT_EQ(layout.stage_count(), 3);
  EXPECT_EQ(layout.first_stage(1), 2);
  EXPECT_EQ(layout.pipeline_of(1), 0);
  EXPECT_EQ(layout.pipeline_of(2), 1);
  EXPECT_EQ(layout.stage(2), (StagePlacement{2, 0, 4}));
  EXPECT_EQ(layout.holders({1}), (std::vector{0, 2}));
  EXPECT_EQ(layout.holders({0, 3}), (std::vector{0, 1, 2}));
  EXPECT_THROW(layout.pipeline_of(3), Error);
}

TEST(Layout, EveryGridThatFitsMakesAValidLayout) {
  for (int world = 1; world <= 12; ++world) {
    for (const int leaves : {1, 2, 4, 8}) {
      for (const int chunks : {1, 2}) {
        const LayoutLimits limits{world, 8, 16, leaves};
        for (const Grid& grid : fitting_grids(limits, chunks)) {
          EXPECT_EQ(grid.pp * grid.dp, world);
          const auto ranges = partition(std::vector<double>(8, 1.0), grid.pp * chunks);
          const Layout layout = make_layout(ranges, grid, 16, leaves, chunks);
          EXPECT_NO_THROW(validate(layout, limits)) << to_toml(layout);
        }
      }
    }
  }
}

TEST(Layout, FoldsIntoLoopsWavesAndOppositePipelines) {
  const std::vector<UnitRange> six = single_units(6);
  const auto ranks = [](const Pipeline& pipeline) {
    std::vector<int> result;
    for (const StagePlacement& stage : pipeline.stages) result.push_back(stage.rank);
    return result;
  };
  const Layout loop = make_layout(six, {2, 1}, 4, 4, {3, Placement::loop});
  EXPECT_EQ(ranks(loop.pipelines[0]), (std::vector{0, 1, 0, 1, 0, 1}));
  const Layout wave = make_layout(six, {2, 2}, 4, 4, {3, Placement::wave});
  EXPECT_EQ(ranks(wave.pipelines[1]), (std::vector{2, 3, 3, 2, 2, 3}));
  const Layout both =
      make_layout({{0, 2}, {2, 4}, {4, 6}}, {3, 2}, 10, 5, {1, Placement::opposite});
  ASSERT_EQ(both.pipelines.size(), 4U);
  EXPECT_EQ(ranks(both.pipelines[2]), (std::vector{3, 4, 5}));
  EXPECT_EQ(ranks(both.pipelines[3]), (std::vector{5, 4, 3}));
  validate(both, {6, 6, 10, 5});
}

TEST(Fit, CountsPipelinesAndStepsOfRanks) {
  const Folding opposite{1, Placement::opposite, 2};
  EXPECT_EQ(fitting_grids({4, 8, 8, 8}, opposite), (std::vector<Grid>{{2, 2}, {4, 1}}));
  EXPECT_EQ(fitting_grids({4, 8, 8, 2}, opposite), (std::vector<Grid>{{4, 1}}));
  expect_has(refusal([&] { fit({3, 8, 8, 8}, 3, {}, opposite); }), "cannot run on 3 ranks");
  expect_has(refusal([&] {
               fit({4, 8, 8, 2}, {}, 2, opposite);
             }),
             "4 pipelines (two per replica), but the gradient sum has 2 leaves");
  expect_has(refusal([&] { fit({2, 8, 1, 1}, {}, {}, opposite); }), "a single leaf");
}

TEST(Layout, ReplicasDifferByOneLeafAtMost) {
  const Layout layout = make_layout({{0, 4}}, {1, 3}, 16, 8);
  for (const Pipeline& pipeline : layout.pipelines) {
    EXPECT_EQ(pipeline.first_microbatch % 2, 0);
    EXPECT_TRUE(pipeline.microbatches() == 4 || pipeline.microbatches() == 6);
  }
}

TEST(Fit, TakesWhatIsLeftOutFromTheWorldSize) {
  const LayoutLimits limits{4, 8, 8, 8};
  EXPECT_EQ(fit(limits, 2, {}), (Grid{2, 2}));
  EXPECT_EQ(fit(limits, {}, 1), (Grid{4, 1}));
  EXPECT_EQ(fit(limits, 4, 1), (Grid{4, 1}));
  EXPECT_EQ(fit(limits, {}, {}), (Grid{1, 4}));
  EXPECT_EQ(fit({4, 8, 8, 2}, {}, {}), (Grid{2, 2}));
}

TEST(Fit, ListsWhatDoesFit) {
  const LayoutLimits limits{6, 4, 8, 4};
  const std::string both = "on 6 ranks, one of: pp=2 dp=3, pp=3 dp=2";
  expect_has(refusal([&] { fit(limits, 4, {}); }), both);
  expect_has(refusal([&] { fit(limits, 2, 2); }), "no layout with pp = 2 and dp = 2 fits 6 ranks");
  expect_has(refusal([&] { fit(limits, 0, {}); }), both);
  expect_has(refusal([&] { fit(limits, {}, -3); }), both);
  expect_has(refusal([&] { fit(limits, 6, {}); }), "6 stages, but the model has 4 units");
  expect_has(refusal([&] { fit(limits, {}, 6); }), "6 replicas, but the gradient sum has 4 leaves");
  // 512 microbatches in 16 leaves: names the key that limits it, and a valid value.
  const std::string wide = refusal([&] { fit({128, 64, 512, 16}, 4, {}); });
  expect_has(wide, "pp = 4 on 128 ranks is 32 replicas, but the gradient sum has 16 leaves");
  expect_has(wide, "numerics.leaves = 32, which");
  EXPECT_EQ(fit({128, 64, 512, 32}, 4, {}), (Grid{4, 32}));
  expect_has(refusal([&] { fit({12, 8, 60, 4}, {}, 6); }), "numerics.leaves = 6, which");
  expect_has(refusal([&] { fit({12, 8, 9, 3}, {}, 6); }), "numerics.leaves = 9, which");
  expect_has(refusal([&] {
               fit({64, 8, 16, 16}, 2, {});
             }),
             "batch.microbatches = 32 or a multiple");
  const std::string none = refusal([&] { fit({7, 4, 8, 4}, {}, {}); });
  expect_has(none, "no layout fits 7 ranks");
  expect_has(none, "at most 4 stages");
  expect_has(none, "on 6 ranks, one of: pp=2 dp=3, pp=3 dp=2");
}

}  // namespace
}  // namespace concertina
