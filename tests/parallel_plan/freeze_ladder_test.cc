// The ceilings of freezing: the published sequences, and the simulator where there is a pipeline.
#include "parallel/policies/foreseen_course.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/freeze_ladder.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

FreezeRules pace(double alpha, const char* rounding, int layers = 12, int most = 0) {
  OptionValues options = default_freeze_options();
  options.at("alpha") = alpha;
  options.at("rounding") = rounding;
  return make_freeze_rules("pipetransformer", options, layers, most == 0 ? layers : most);
}

std::vector<double> course(double alpha, const char* rounding, int epochs, int layers = 12,
                           int most = 0) {
  return foreseen_course(pace(alpha, rounding, layers, most), epochs, 10);
}

std::vector<double> real_course(double alpha, int epochs) {
  std::vector<double> frozen;
  for (int epoch = 0; epoch < epochs; ++epoch)
    frozen.push_back(12 * (1 - std::pow(1 - alpha, epoch)));
  return frozen;
}

/// Published figures have two decimals, and some were rounded twice.
constexpr double kShownDecimals = 0.0062;

FreezeLadder ladder(const std::vector<double>& frozen, int stages = 1, int microbatches = 1,
                    double fixed = 0, int layers = 12) {
  return freeze_ladder(frozen, {layers, stages, microbatches, fixed});
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

constexpr double kThird = 1.0 / 3;

TEST(FreezeLadder, HasTheClosedFormsOfEachRounding) {
  const auto expect = [](const std::vector<double>& frozen, double layers, double alone,
                         double cached) {
    const FreezeLadder rungs = ladder(frozen);
    EXPECT_NEAR(mean(frozen), layers, kShownDecimals);
    EXPECT_NEAR(rungs.replicas.over_best, alone, kShownDecimals);
    EXPECT_NEAR(rungs.cache.over_best, cached, kShownDecimals);
  };
  expect(course(kThird, "ceil", 10), 8.8, 1.96, 3.33);
  expect(real_course(kThird, 10), 8.46, 1.89, 3.06);
  expect(course(kThird, "floor", 10), 8.0, 1.80, 2.75);
  expect(course(kThird, "ceil", 10, 12, 11), 8.5, 1.89, 3.10);
}

TEST(FreezeLadder, RisesWithAlphaAndEpochs) {
  const auto cached = [](const std::vector<double>& frozen) {
    return ladder(frozen).cache.over_best;
  };
  const double alpha[] = {1.0 / 5, 1.0 / 4, 1.0 / 3, 2.0 / 5, 1.0 / 2};
  const double up[] = {2.28, 2.67, 3.33, 4.00, 4.62}, down[] = {1.96, 2.28, 2.75, 3.10, 3.67};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(cached(course(alpha[i], "ceil", 10)), up[i], kShownDecimals) << alpha[i];
    EXPECT_NEAR(cached(course(alpha[i], "floor", 10)), down[i], kShownDecimals) << alpha[i];
  }
  EXPECT_NEAR(cached(course(kThird, "ceil", 3)), 1.32, kShownDecimals);
  EXPECT_NEAR(cached(course(kThird, "ceil", 5)), 1.80, kShownDecimals);
  EXPECT_NEAR(cached(course(kThird, "ceil", 20)), 6.67, kShownDecimals);
}

struct Ceiling {
  const char* rounding;
  int microbatches;
  double fixed, freeze, replicas, cache, best;  // 0: not published
};

TEST(FreezeLadder, OfTwoStagesIsThePublishedOne) {
  for (const Ceiling& row : {Ceiling{"ceil", 4, 0, 1.77, 2.45, 4.17, 3.33},
                             {"ceil", 8, 0, 1.72, 2.20, 3.75, 3.33},
                             {"ceil", 16, 0, 1.70, 0, 3.54, 3.33},
                             {"floor", 4, 0, 1.57, 0, 3.44, 2.75},
                             {"floor", 8, 0, 0, 0, 3.09, 2.75},
                             {"floor", 16, 0, 0, 0, 2.92, 2.75},
                             {"ceil", 4, 0.05, 0, 0, 3.73, 2.98},
                             {"ceil", 8, 0.05, 0, 0, 3.36, 2.98},
                             {"ceil", 16, 0.05, 0, 0, 3.17, 2.98},
                             {"floor", 4, 0.05, 0, 0, 3.16, 2.53},
                             {"floor", 8, 0.05, 0, 0, 2.84, 2.53},
                             {"floor", 16, 0.05, 0, 0, 2.69, 2.53},
                             {"ceil", 4, 0.1, 0, 0, 3.38, 2.70},
                             {"ceil", 8, 0.1, 0, 0, 3.04, 2.70},
                             {"ceil", 16, 0.1, 0, 0, 2.87, 2.70},
                             {"floor", 4, 0.1, 0, 0, 2.93, 2.34},
                             {"floor", 8, 0.1, 0, 0, 2.63, 2.34},
                             {"floor", 16, 0.1, 0, 0, 2.49, 2.34}}) {
    SCOPED_TRACE(fmt::format("{} M={} c={}", row.rounding, row.microbatches, row.fixed));
    const FreezeLadder rungs =
        ladder(course(kThird, row.rounding, 10), 2, row.microbatches, row.fixed);
    if (row.freeze > 0) {
      EXPECT_NEAR(rungs.freeze.over_gpipe, row.freeze, kShownDecimals);
    }
    if (row.replicas > 0) {
      EXPECT_NEAR(rungs.replicas.over_gpipe, row.replicas, kShownDecimals);
    }
    EXPECT_NEAR(rungs.cache.over_gpipe, row.cache, kShownDecimals);
    EXPECT_NEAR(rungs.cache.over_best, row.best, kShownDecimals);
  }
}

TEST(FreezeLadder, OfThePapersEightStagesIsThePublishedOne) {
  const auto expect = [](double alpha, int epochs, int layers, double replicas, double cache) {
    SCOPED_TRACE(fmt::format("alpha {}, {} epochs, {} layers", alpha, epochs, layers));
    const FreezeLadder rungs = ladder(course(alpha, "ceil", epochs, layers), 8, 16, 0, layers);
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
    const int layers = *rc::gen::inRange(1, 20);
    const int frozen = *rc::gen::inRange(0, layers + 1);
    LadderShape shape{.layers = layers, .stages = stages, .microbatches = microbatches};
    shape.forward = *rc::gen::inRange(1, 9) / 4.0;
    shape.input = *rc::gen::inRange(1, 9) / 4.0;
    shape.weight = *rc::gen::inRange(1, 9) / 4.0;
    shape.frozen = *rc::gen::inRange(1, 9) / 4.0;
    const Layout layout = straight(stages, microbatches);
    Costs costs = unit_costs(layout);
    for (int s = 0; s < stages; ++s) {
      const double share = static_cast<double>(layers) / stages;
      const double trained = std::clamp((s + 1) * share - frozen, 0.0, share);
      costs.stages[static_cast<std::size_t>(s)] = {
          .forward = trained * shape.forward + (share - trained) * shape.frozen,
          .input = trained * shape.input,
          .weight = trained * shape.weight};
    }
    const double whole = (shape.forward + shape.input + shape.weight) * layers;
    const double step = simulate(make_plan(layout, "gpipe"), layout, costs).makespan;
    // A run of one epoch: freezing over the best layout is the work over its share of a step.
    const FreezeLadder rungs = freeze_ladder(std::vector{static_cast<double>(frozen)}, shape);
    RC_ASSERT(std::abs(rungs.freeze.over_best - whole * microbatches / stages / step) < 1e-9);
  }));
}

TEST(FreezeLadder, TheFirstLayerThatTrainsNeedsNoInputGradientOfItsFirstHalf) {
  const LadderShape whole{.layers = 4};
  LadderShape shape = whole;
  shape.first_input = 0.5;
  const auto seconds = [](const LadderShape& of, double frozen) {
    return 12 / freeze_ladder(std::vector{frozen}, of).freeze.over_gpipe;
  };
  EXPECT_DOUBLE_EQ(seconds(shape, 0), 12);
  EXPECT_DOUBLE_EQ(seconds(whole, 2), 8);
  EXPECT_DOUBLE_EQ(seconds(shape, 2), 7.5);
  EXPECT_DOUBLE_EQ(seconds(shape, 4), 4);
}

/// Equal stages keep the bubble of the unfrozen pipeline: what they gain is the work left out.
TEST(FreezeLadder, OfEqualStagesKeepsTheBubble) {
  for (const auto& [microbatches, over_best] :
       {std::pair{4, 1.57}, std::pair{8, 1.74}, std::pair{16, 1.84}}) {
    const FreezeLadder rungs = ladder(course(kThird, "ceil", 10), 2, microbatches);
    EXPECT_NEAR(rungs.repack.over_gpipe, 1.96, kShownDecimals);
    EXPECT_NEAR(rungs.repack.over_best, over_best, kShownDecimals);
  }
}

TEST(FreezeLadder, OfEqualStagesIsWhatTheSimulatorSays) {
  EXPECT_TRUE(rc::check([] {
    const int stages = *rc::gen::inRange(1, 6), microbatches = *rc::gen::inRange(1, 9);
    const int layers = *rc::gen::inRange(1, 20);
    const int frozen = *rc::gen::inRange(0, layers + 1);
    const Layout layout = straight(stages, microbatches);
    Costs costs = unit_costs(layout);
    const double forward = static_cast<double>(layers) / stages;
    const double trained = static_cast<double>(layers - frozen) / stages;
    for (auto& stage : costs.stages)
      stage = {.forward = forward, .input = trained, .weight = trained};
    const double step = simulate(make_plan(layout, "gpipe"), layout, costs).makespan;
    const FreezeLadder rungs =
        ladder({static_cast<double>(frozen)}, stages, microbatches, 0, layers);
    RC_ASSERT(std::abs(rungs.repack.over_best - 3.0 * layers * microbatches / stages / step) <
              1e-9);
  }));
}

TEST(FreezeLadder, NeverStepsDown) {
  EXPECT_TRUE(rc::check([] {
    const int layers = *rc::gen::inRange(1, 30);
    std::vector<double> frozen{static_cast<double>(*rc::gen::inRange(0, layers + 1))};
    for (int epoch = *rc::gen::inRange(0, 12); epoch > 0; --epoch)
      frozen.push_back(*rc::gen::inRange(static_cast<int>(frozen.back()), layers + 1));
    const FreezeLadder rungs = ladder(frozen, *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 33),
                                      *rc::gen::inRange(0, 10) / 10.0, layers);
    double before = 1;
    for (const Rung& rung : {rungs.freeze, rungs.repack, rungs.replicas, rungs.cache}) {
      RC_ASSERT(rung.over_gpipe >= before - 1e-9);
      before = rung.over_gpipe;
    }
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
