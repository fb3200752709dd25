// The factors of ranks are recovered from their effect on any units, and left unchanged if nothing
// depends on them.
#include "parallel/predict/rank_factors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "parallel/predict/cost_record.h"

namespace concertina {
namespace {

/// Ranks that each hold some passes, and the times that they would measure.
struct Measured {
  std::vector<double> factors;  // the median is 1
  std::vector<int> kinds;
  std::vector<std::vector<double>> seconds;
};

/// All ranks hold a pass of the first kind, so that all are comparable.
Measured measured(double noise) {
  std::mt19937 random(*rc::gen::inRange(0, 1 << 30));
  const auto real = [&](double from, double to) {
    return std::exp(std::uniform_real_distribution(std::log(from), std::log(to))(random));
  };
  Measured all;
  const std::size_t ranks = 1 + random() % 8, kinds = 1 + random() % 5;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.factors.push_back(real(.2, 5));
  std::vector<double> sorted = all.factors, of_kind;
  std::ranges::sort(sorted);
  for (double& factor : all.factors) factor /= sorted[(ranks - 1) / 2];
  for (std::size_t kind = 0; kind < kinds; ++kind) of_kind.push_back(real(1e-5, 1e-1));
  for (std::size_t pass = 0; pass < 12; ++pass)
    all.kinds.push_back(pass < 4 ? 0 : static_cast<int>(random() % kinds));
  for (const double factor : all.factors) {
    std::vector<double>& row = all.seconds.emplace_back();
    const std::size_t sure = random() % 4;
    for (std::size_t pass = 0; pass < 12; ++pass)
      row.push_back(pass == sure || random() % 2 == 0
                        ? factor * of_kind[all.kinds[pass]] * real(1 / (1 + noise), 1 + noise)
                        : 0);
  }
  return all;
}

TEST(RankFactors, AreFoundAgain) {
  EXPECT_TRUE(rc::check([] {
    const double noise = *rc::gen::element(0.0, 0.03);
    const Measured all = measured(noise);
    const std::vector<double> found = rank_factors(all.seconds, all.kinds);
    RC_ASSERT(found.size() == all.factors.size());
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      const double off = std::abs(found[rank] / all.factors[rank] - 1);
      // If either of two may be the median, noise decides.
      RC_ASSERT(off <= 4 * noise + 1e-4 ||
                (found[rank] == 1 && std::abs(all.factors[rank] - 1) <= kSameRank + 4 * noise));
    }
  }));
}

TEST(RankFactors, DependOnNoUnitOfTime) {
  EXPECT_TRUE(rc::check([] {
    Measured all = measured(0.5);
    const std::vector<double> found = rank_factors(all.seconds, all.kinds);
    for (std::vector<double>& row : all.seconds)
      for (double& seconds : row) seconds *= 1024;
    const std::vector<double> again = rank_factors(all.seconds, all.kinds);
    for (std::size_t rank = 0; rank < found.size(); ++rank)
      RC_ASSERT(std::abs(again[rank] - found[rank]) <= 1e-7 * found[rank]);
  }));
}

TEST(RankFactors, NoiseIsNoFactor) {
  EXPECT_EQ(rank_factors({{1, 2}, {1.09, 2.18}, {.92, 1.84}}, {0, 1}),
            (std::vector<double>{1, 1, 1}));
  EXPECT_GT(rank_factors({{1, 2}, {1.12, 2.24}}, {0, 1})[1], 1.1);
}

/// A pipeline in which each unit has one holder.
TEST(RankFactors, RanksThatShareNoUnitAreComparedByTheirLayers) {
  const std::vector<int> kinds{0, 1, 1, 1, 2};  // embedding, layers, head
  const std::vector<double> found = rank_factors({{9, 1, 0, 0, 0}, {0, 0, 2, 2, 70}}, kinds);
  EXPECT_NEAR(found[0], 1, 1e-6);
  EXPECT_NEAR(found[1], 2, 1e-6);
}

TEST(RankFactors, WhatCannotBeComparedIsAsTheOthers) {
  EXPECT_TRUE(rank_factors({}, {}).empty());
  EXPECT_EQ(rank_factors({{3, 4}}, {0, 1}), (std::vector<double>{1}));
  EXPECT_EQ(rank_factors({{3, 0}, {0, 40}}, {0, 1}), (std::vector<double>{1, 1}));
  EXPECT_EQ(rank_factors({{3, 0}, {0, 0}}, {0, 1}), (std::vector<double>{1, 0})) << "a spare rank";
  // Two separate groups.
  const std::vector<double> found = rank_factors({{1, 0}, {0, 8}, {3, 0}, {0, 2}}, {0, 1});
  const std::vector<double> wanted{1, 4, 3, 1};
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t rank = 0; rank < wanted.size(); ++rank)
    EXPECT_NEAR(found[rank], wanted[rank], 1e-6);
}

TEST(RankFactors, EqualUnitsAreOfOneKind) {
  const UnitCost layer{.forward_flops = 1, .input_flops = 1, .weight_flops = 1};
  UnitCost frozen = layer;
  frozen.weight_flops = 0;
  EXPECT_EQ(pass_kinds({frozen, layer, layer}), (std::vector<int>{0, 1, 2, 3, 4, 5, 3, 4, 5}));
}

TEST(RankFactors, ARecordKeepsThatOfASpareRankAndTakesTheNewestOfOthers) {
  ModelSpec model;
  model.units.push_back({.name = "000", .parameters = {}, .cost = {.forward_flops = 1}});
  CostRecord record(model);
  const auto add = [&](std::vector<double> factors) {
    StepCosts seen{.units = {{1, 0, 0, 0}}, .machine = {}};
    seen.machine.factors = std::move(factors);
    record.add(seen, 0);
    return record.machine().factors;
  };
  EXPECT_EQ(add({1, 2, 0}), (std::vector<double>{1, 2, 1}));
  EXPECT_EQ(add({1, 0, 3}), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(add({1, 1, 0}), (std::vector<double>{1, 1, 3}));
}

}  // namespace
}  // namespace concertina
