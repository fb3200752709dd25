// What a study claims: equivalence and its power.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "experiments/results/equivalence.h"

namespace concertina {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
using Pairs = std::vector<std::pair<double, double>>;

// Student's sleep data, as in study_statistics_test.cc.
const Pairs kSleep = {{0.7, 1.9}, {-1.6, 0.8}, {-0.2, 1.1}, {-1.2, 0.1}, {-0.1, -0.1},
                      {3.4, 4.4}, {3.7, 5.5},  {0.8, 1.6},  {0.0, 4.6},  {2.0, 3.4}};

Pairs swapped(Pairs pairs) {
  for (auto& [first, second] : pairs) std::swap(first, second);
  return pairs;
}

Pairs around(double difference) {
  return {{1, 1 + difference - 0.1}, {2, 2 + difference}, {3, 3 + difference + 0.1}};
}

TEST(Equivalence, IsThatOfStatsmodels) {
  // statsmodels 0.15: ttost_paired(second, first, -margin, margin); scipy: t.interval(0.9, ...).
  for (const auto& [margin, p] : {std::pair(1.0, 0.9149441145512887),
                                  {2.0, 0.1541572356690974},
                                  {2.5, 0.021116860246500745},
                                  {3.0, 0.002655570292658671}}) {
    const Equivalence result = test_equivalence(kSleep, margin, 0.05);
    EXPECT_NEAR(result.p.value(), p, 1e-12);
    EXPECT_NEAR(result.difference - result.half_width.value(), 0.8669947329707163, 1e-12);
    EXPECT_NEAR(result.difference + result.half_width.value(), 2.293005267029284, 1e-12);
    EXPECT_NEAR(result.deviation.value(), 1.229995, 1e-6);  // R: sd of the differences
    EXPECT_EQ(result.pairs, 10);
  }
}

TEST(Equivalence, VerdictsFollowTheIntervalAndTheMargin) {
  using enum EquivalenceVerdict;
  const auto verdict = [](const Pairs& pairs, double margin) {
    const Equivalence result = test_equivalence(pairs, margin, 0.05);
    if (result.p) {
      const double most = std::abs(result.difference) + *result.half_width;
      EXPECT_EQ(result.verdict == equivalent, most < margin) << "p and interval agree";
    }
    return result.verdict;
  };
  EXPECT_EQ(verdict(kSleep, 2.5), equivalent);
  EXPECT_EQ(verdict(kSleep, 2), different) << "p 0.003, but the interval reaches over the margin";
  EXPECT_EQ(verdict(kSleep, 0.5), outside);
  EXPECT_EQ(verdict(around(0.05), 0.1), undecided);
  EXPECT_EQ(verdict({{1, 1}}, 5), too_few);
  EXPECT_FALSE(test_equivalence(Pairs{{1, 1}}, 5, 0.05).p);
  EXPECT_EQ(verdict({{1, 2}, {4, 5}}, 1.5), equivalent) << "without spread";
  EXPECT_EQ(verdict({{1, 2}, {4, 5}}, 1), outside);
}

TEST(Equivalence, IsSymmetricAndAlwaysPassesAnInfiniteMargin) {
  for (const double difference : {-3.0, -0.05, 0.0, 0.2, 40.0}) {
    const Pairs pairs = around(difference);
    const Equivalence there = test_equivalence(pairs, 0.3, 0.05),
                      back = test_equivalence(swapped(pairs), 0.3, 0.05);
    EXPECT_NEAR(there.p.value(), back.p.value(), 1e-12);
    EXPECT_EQ(there.verdict, back.verdict);
    EXPECT_NEAR(there.difference, -back.difference, 1e-14);
    const Equivalence any = test_equivalence(pairs, kNever, 0.05);
    EXPECT_EQ(any.p, 0);
    EXPECT_EQ(any.verdict, EquivalenceVerdict::equivalent);
  }
}

TEST(Equivalence, PowerIsTheExactIntegral) {
  // scipy: integrate.quad over stats.chi of the normal chance;
  // experiments/study/statistics_check.py.
  const auto power = [](int n, double deviation, double margin, double alpha, double difference) {
    return equivalence_power(n, {deviation, margin, alpha, difference});
  };
  EXPECT_NEAR(power(2, 0.004, 0.005, 0.05, 0), 0.12554814914986515, 1e-10);
  EXPECT_NEAR(power(3, 0.004, 0.005, 0.05, 0), 0.21949307198676543, 1e-10);
  EXPECT_NEAR(power(5, 0.004, 0.005, 0.05, 0), 0.527433590177663, 1e-10);
  EXPECT_NEAR(power(5, 0.002, 0.005, 0.05, 0), 0.9950254879230059, 1e-10);
  EXPECT_NEAR(power(10, 0.004, 0.005, 0.05, 0.002), 0.7062835837014384, 1e-10);
  EXPECT_NEAR(power(12, 0.004, 0.005, 0.025, -0.001), 0.879857718370929, 1e-10);
  EXPECT_NEAR(power(200, 1, 0.2, 0.05, 0.05), 0.650405490471645, 1e-10);
  EXPECT_NEAR(power(2, 1, kNever, 0.05, 0), 1, 1e-10);
  EXPECT_NEAR(power(2000, 1, 0.1, 0.05, 0.1), 0.05, 1e-6) << "at the margin: alpha";
  EXPECT_EQ(power(5, 0, 0.1, 0.05, 0.05), 1);
}

TEST(Equivalence, PowerIsThatOfSimulatedPairs) {
  std::mt19937_64 random(1);
  for (const EquivalenceDesign& design :
       {EquivalenceDesign{0.4, 0.5, 0.05, 0}, EquivalenceDesign{0.4, 0.5, 0.05, 0.2}}) {
    constexpr int kPairs = 8, kStudies = 4000;
    std::normal_distribution<double> normal(design.difference, design.deviation);
    int passed = 0;
    for (int study = 0; study < kStudies; ++study) {
      Pairs pairs;
      for (int i = 0; i < kPairs; ++i) pairs.emplace_back(0, normal(random));
      passed += test_equivalence(pairs, design.margin, design.alpha).verdict ==
                EquivalenceVerdict::equivalent;
    }
    const double power = equivalence_power(kPairs, design);
    EXPECT_NEAR(static_cast<double>(passed) / kStudies, power,
                4 * std::sqrt(power * (1 - power) / kStudies));
  }
}

TEST(Equivalence, TheFewestPairsThatHaveThePower) {
  for (const auto& [power, design, pairs] :
       {std::tuple(0.8, EquivalenceDesign{0.004, 0.005, 0.05, 0}, 8),
        {0.9, EquivalenceDesign{0.004, 0.005, 0.05, 0}, 9},
        {0.8, EquivalenceDesign{0.004, 0.005, 0.05, 0.002}, 13},
        {0.8, EquivalenceDesign{0.001, 0.005, 0.05, 0}, 3}})
    EXPECT_EQ(pairs_for_power(power, design), pairs);
  EXPECT_FALSE(pairs_for_power(0.8, {1, 0.5, 0.05, 0.6})) << "the truth is outside";
}

}  // namespace
}  // namespace concertina
