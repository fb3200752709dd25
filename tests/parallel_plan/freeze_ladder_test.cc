// Compares the ceilings of freezing with published sequences and, for pipelines, the simulator.
#include "tests/parallel_plan/freeze_ladder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/policies/foreseen_course.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

std::vector<double> course(double alpha, const char* rounding, int epochs, int layers = 12,
                           int most = 0) {
  OptionValues options = default_freeze_options();
  options.at("alpha") = alpha;
  options.at("rounding") = rounding;
  return foreseen_course(
      make_freeze_rules("pipetransformer", options, layers, most == 0 ? layers : most), epochs, 10);
}

/// Published values have two decimals, and some were rounded twice.
constexpr double kShownDecimals = 0.0062;
constexpr double kThird = 1.0 / 3;

TEST(FreezeLadder, HasTheClosedFormsOfEachRounding) {
  const auto expect = [](const std::vector<double>& frozen, double layers, double alone,
                         double cached) {
    const FreezeLadder rungs = freeze_ladder(frozen, {.layers = 12});
    EXPECT_NEAR(std::accumulate(frozen.begin(), frozen.end(), 0.0) / 10, layers, kShownDecimals);
    EXPECT_NEAR(rungs.replicas.over_best, alone, kShownDecimals);
    EXPECT_NEAR(rungs.cache.over_best, cached, kShownDecimals);
  };
  expect(course(kThird, "ceil", 10), 8.8, 1.96, 3.33);
  expect(course(kThird, "floor", 10), 8.0, 1.80, 2.75);
  expect(course(kThird, "ceil", 10, 12, 11), 8.5, 1.89, 3.10);
}

TEST(FreezeLadder, OfTwoStagesIsThePublishedOne) {
  struct Published {
    const char* rounding;
    int microbatches;
    double cache, best;
  };
  for (const Published& row : {Published{"ceil", 4, 4.17, 3.33},
                               {"ceil", 8, 3.75, 3.33},
                               {"ceil", 16, 3.54, 3.33},
                               {"floor", 4, 3.44, 2.75},
                               {"floor", 8, 3.09, 2.75},
                               {"floor", 16, 2.92, 2.75}}) {
    SCOPED_TRACE(fmt::format("{} M={}", row.rounding, row.microbatches));
    const FreezeLadder rungs =
        freeze_ladder(course(kThird, row.rounding, 10), {12, 2, row.microbatches});
    EXPECT_NEAR(rungs.cache.over_gpipe, row.cache, kShownDecimals);
    EXPECT_NEAR(rungs.cache.over_best, row.best, kShownDecimals);
  }
  const FreezeLadder four = freeze_ladder(course(kThird, "ceil", 10), {12, 2, 4});
  EXPECT_NEAR(four.freeze.over_gpipe, 1.77, kShownDecimals);
  EXPECT_NEAR(four.replicas.over_gpipe, 2.45, kShownDecimals);
  // Equal stages keep the bubble of the unfrozen pipeline, so they gain only the omitted work.
  EXPECT_NEAR(four.repack.over_gpipe, 1.96, kShownDecimals);
  EXPECT_NEAR(four.repack.over_best, 1.57, kShownDecimals);
}

TEST(FreezeLadder, OfThePapersEightStagesIsThePublishedOne) {
  const auto expect = [](double alpha, int epochs, int layers, double replicas, double cache) {
    SCOPED_TRACE(fmt::format("alpha {}, {} epochs, {} layers", alpha, epochs, layers));
    const FreezeLadder rungs =
        freeze_ladder(course(alpha, "ceil", epochs, layers), {layers, 8, 16});
    EXPECT_NEAR(rungs.replicas.over_gpipe, replicas, kShownDecimals);
    EXPECT_NEAR(rungs.cache.over_gpipe, cache, kShownDecimals);
  };
  expect(kThird, 10, 12, 2.81, 4.79);  // CIFAR
  expect(kThird, 3, 12, 1.81, 1.89);   // SQuAD
  expect(kThird, 3, 24, 1.81, 1.89);   // the same with BERT-large
  expect(0.07, 20, 12, 2.13, 2.74);    // ImageNet's alpha
  expect(0.07, 23, 12, 2.23, 3.00);
  expect(0.07, 25, 12, 2.29, 3.16);
  expect(0.07, 30, 12, 2.44, 3.65);
}

TEST(FreezeLadder, OfStagesIsWhatTheSimulatorSays) {
  EXPECT_TRUE(rc::check([] {
    const int stages = *rc::gen::inRange(1, 6), microbatches = *rc::gen::inRange(1, 9);
    const int layers = *rc::gen::inRange(1, 20), frozen = *rc::gen::inRange(0, layers + 1);
    const Layout layout = straight(stages, microbatches);
    Costs costs = unit_costs(layout);
    const double share = static_cast<double>(layers) / stages;
    for (int s = 0; s < stages; ++s) {
      const double trained = std::clamp((s + 1) * share - frozen, 0.0, share);
      costs.stages[s] = {.forward = share, .input = trained, .weight = trained};
    }
    const double step = simulate(make_plan(layout, "gpipe"), layout, costs).makespan;
    RC_ASSERT(std::abs(gpipe_step({layers, stages, microbatches}, frozen) - step) < 1e-9);
  }));
}

TEST(FreezeLadder, OfAPolicyThatLooksAtTheRunIsNotForeseen) {
  const FreezeRules rules = make_freeze_rules("autofreeze", default_freeze_options(), 4, 4);
  EXPECT_THROW(foreseen_course(rules, 10, 5), Error);
}

TEST(FreezeLadder, ForeseesTablesAndRates) {
  OptionValues options = default_freeze_options();
  options.at("at") = std::vector<std::string>{"epoch 1: 2", "epoch 3: 4"};
  const std::vector<double> table =
      foreseen_course(make_freeze_rules("list", options, 4, 4), 5, 10);
  EXPECT_EQ(table, (std::vector<double>{0, 2, 2, 4, 4}));
  FreezeRules linear = make_freeze_rules("linear", default_freeze_options(), 4, 4);
  linear.steps = 50;
  EXPECT_EQ(foreseen_course(linear, 5, 10), (std::vector<double>{0, 0, 2, 4, 4}));
}

}  // namespace
}  // namespace concertina
