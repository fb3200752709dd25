#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "experiments/results/statistics.h"

namespace concertina {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Pairs = std::vector<std::pair<double, double>>;

// Extra hours of sleep with two drugs, ten patients: Student, "The Probable Error of a Mean",
// Biometrika 6 (1908); R's data set `sleep`.
const std::vector<double> kFirst = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSecond = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

Pairs zip(const std::vector<double>& a, const std::vector<double>& b) {
  Pairs pairs;
  for (std::size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  return pairs;
}

SampleDifference paired_t(const Pairs& pairs, double confidence = 0.95) {
  return compare_pairs(pairs, SignificanceTest::paired_t, confidence);
}

double wilcoxon(const Pairs& pairs) {
  return compare_pairs(pairs, SignificanceTest::wilcoxon, 0.95).p.value();
}

TEST(Statistics, MeanDeviationAndIntervalOfAMean) {
  const SampleSummary summary = summarize(kFirst, 0.95);
  EXPECT_EQ(summary.n, 10);
  EXPECT_NEAR(summary.mean, 0.75, 1e-15);
  EXPECT_NEAR(summary.sd.value(), 1.789010, 5e-7);  // R: sd(sleep$extra[1:10])
  // R: t.test(sleep$extra[1:10])$conf.int: -0.5297804 2.0297804
  EXPECT_NEAR(summary.mean - summary.half_width.value(), -0.5297804, 5e-8);
  EXPECT_NEAR(summary.mean + summary.half_width.value(), 2.0297804, 5e-8);
  // Tables of t: 4.30265 at 2 degrees of freedom and 0.975, 9.92484 at 0.995.
  EXPECT_NEAR(summarize(std::vector{1.0, 2.0, 3.0}, 0.95).half_width.value(),
              4.30265 / std::sqrt(3), 1e-5);
  EXPECT_NEAR(summarize(std::vector{1.0, 2.0, 3.0}, 0.99).half_width.value(),
              9.92484 / std::sqrt(3), 1e-5);
}

TEST(Statistics, OneValueHasNoSpread) {
  const SampleSummary one = summarize(std::vector{3.5}, 0.95);
  EXPECT_EQ(one.n, 1);
  EXPECT_EQ(one.mean, 3.5);
  EXPECT_FALSE(one.sd);
  EXPECT_FALSE(one.half_width);
  const SampleSummary none = summarize({}, 0.95);
  EXPECT_EQ(none.n, 0);
  EXPECT_TRUE(std::isnan(none.mean));
}

TEST(Statistics, EqualValuesHaveTheirMeanAndNoSpreadExactly) {
  for (const double value : {0.1, -1e300, 3.0e-310, 6767432.0}) {
    const SampleSummary summary = summarize(std::vector<double>(7, value), 0.95);
    EXPECT_EQ(summary.mean, value);
    EXPECT_EQ(summary.sd.value(), 0);
    EXPECT_EQ(summary.half_width.value(), 0);
  }
}

TEST(Statistics, ValuesThatAreNotFiniteAreCountedNotAveraged) {
  const SampleSummary summary =
      summarize(std::vector{1.0, kNan, 2.0, -kInfinity, kInfinity, 3.0}, 0.95);
  EXPECT_EQ(summary.n, 3);
  EXPECT_EQ(summary.nan, 1);
  EXPECT_EQ(summary.infinite, 2);
  EXPECT_EQ(summary.mean, 2);
  const SampleDifference difference =
      paired_t({{1, 2}, {kNan, 100}, {2, 3.5}, {5, kInfinity}, {3, 4.2}});
  EXPECT_EQ(difference.pairs, 3);
  EXPECT_NEAR(difference.difference, 3.7 / 3, 1e-15);
}

TEST(Statistics, LargeValuesDoNotOverflow) {
  const SampleSummary summary = summarize(std::vector{1e308, 1.2e308, 1.4e308}, 0.95);
  EXPECT_NEAR(summary.mean / 1e308, 1.2, 1e-12);
}

TEST(Statistics, PairedTTestOfStudentsSleepData) {
  // R: with(sleep, t.test(extra[group == 2], extra[group == 1], paired = TRUE))
  //    t = 4.0621, df = 9, p-value = 0.002833; 0.7001142 2.4598858; mean difference 1.58
  const SampleDifference result = paired_t(zip(kFirst, kSecond));
  EXPECT_EQ(result.test, SignificanceTest::paired_t);
  EXPECT_EQ(result.pairs, 10);
  EXPECT_NEAR(result.difference, 1.58, 1e-14);
  EXPECT_NEAR(result.p.value(), 0.002833, 5e-7);
  EXPECT_NEAR(result.half_width.value(), (2.4598858 - 0.7001142) / 2, 1e-7);
  EXPECT_NEAR(paired_t(zip(kSecond, kFirst)).difference, -1.58, 1e-14);
}

TEST(Statistics, WelchTestOfStudentsSleepData) {
  // R: t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939;
  //    -3.3654832 0.2054832
  const SampleDifference result = compare_samples(kFirst, kSecond, 0.95);
  EXPECT_EQ(result.test, SignificanceTest::welch);
  EXPECT_EQ(result.pairs, 0);
  EXPECT_NEAR(result.difference, 1.58, 1e-14);
  EXPECT_NEAR(result.p.value(), 0.07939, 5e-6);
  EXPECT_NEAR(result.half_width.value(), (3.3654832 + 0.2054832) / 2, 1e-7);
}

TEST(Statistics, WilcoxonTestOfPublishedData) {
  // Hollander and Wolfe (1973), depression before and after: R's ?wilcox.test, V = 40, p = 0.01953
  // on one side.
  const std::vector<double> before = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::vector<double> after = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  EXPECT_NEAR(wilcoxon(zip(before, after)), 20.0 / 512, 1e-14);
  EXPECT_NEAR(wilcoxon(zip(after, before)), 20.0 / 512, 1e-14);
  // All nine differences that are not zero have one sign, two of them are equal: 2 of 2^9 signs.
  EXPECT_NEAR(wilcoxon(zip(kFirst, kSecond)), 2.0 / 512, 1e-14);
  EXPECT_FALSE(compare_pairs(zip(before, after), SignificanceTest::wilcoxon, 0.95).half_width);
  // |d| = 1, 1, 1, 2 with one negative 1: mean ranks 2, 2, 2, 4; of 16 sums those at most 2 (or at
  // least 8) have 4 signs on each side: 8 / 16.
  EXPECT_NEAR(wilcoxon({{0, 1}, {0, -1}, {0, 1}, {0, 2}}), 0.5, 1e-14);
}

TEST(Statistics, WilcoxonOfManyPairsIsNearlyExact) {
  // Differences 1 to n, 5 of 12 of them negative; expected: the exact distribution in whole numbers
  // (Python): for r in 1 to n, counts[s] += counts[s - r]; 2 * sum(counts[:smaller + 1]) / 2**n.
  const auto p = [](int n) {
    Pairs pairs;
    for (int i = 1; i <= n; ++i) pairs.emplace_back(0, i % 12 < 5 ? -i : i);
    return wilcoxon(pairs);
  };
  EXPECT_NEAR(p(30), 0.6554384250193834, 1e-12);
  EXPECT_NEAR(p(200), 0.03570149530345408, 1e-12);
  EXPECT_NEAR(p(201), 0.027293732173131323, 3e-4);
}

TEST(Statistics, DifferencesWithoutSpread) {
  EXPECT_EQ(paired_t({{1, 1}, {2, 2}, {0.3, 0.3}}).p.value(), 1);
  EXPECT_EQ(paired_t({{1, 1}, {2, 2}, {0.3, 0.3}}).half_width.value(), 0);
  EXPECT_EQ(paired_t({{1, 2}, {2, 3}, {4, 5}}).p.value(), 0);
  EXPECT_EQ(wilcoxon({{1, 1}, {2, 2}}), 1);
  const std::vector<double> ones(3, 1.0), twos(4, 2.0);
  EXPECT_EQ(compare_samples(ones, ones, 0.95).p.value(), 1);
  EXPECT_EQ(compare_samples(ones, twos, 0.95).p.value(), 0);
  // One sample without spread: the test of the other one's mean, at its degrees of freedom.
  const SampleDifference one = compare_samples(ones, std::vector{1.0, 2.0, 3.0}, 0.95);
  EXPECT_NEAR(one.p.value(), 0.225403330758517, 1e-12);  // t = sqrt(3), df 2: 1 - sqrt(3 / 5)
}

TEST(Statistics, TooFewValuesHaveNoTest) {
  const SampleDifference one = paired_t({{1, 3}});
  EXPECT_EQ(one.test, SignificanceTest::none);
  EXPECT_EQ(one.pairs, 1);
  EXPECT_EQ(one.difference, 2);
  EXPECT_FALSE(one.p);
  EXPECT_FALSE(one.half_width);
  EXPECT_FALSE(compare_samples(std::vector{1.0}, kFirst, 0.95).p);
  EXPECT_TRUE(std::isnan(paired_t({}).difference));
}

TEST(Statistics, HolmsCorrection) {
  const auto expect = [](const std::vector<double>& p, const std::vector<double>& corrected) {
    const std::vector<double> result = holm(p);
    ASSERT_EQ(result.size(), corrected.size());
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(result[i], corrected[i], 1e-15) << i;
  };
  // By hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, then 1 x 0.04, which may not be below the one before.
  expect({0.01, 0.04, 0.03, 0.005}, {0.03, 0.06, 0.06, 0.02});
  // R: p.adjust(c(0.0001, 0.6, 0.9, 0.02), "holm").
  expect({0.0001, 0.6, 0.9, 0.02}, {0.0004, 1, 1, 0.06});
  expect({0.2}, {0.2});
  expect({0.5, 0.5}, {1, 1});
  expect({0, 1}, {0, 1});
  expect({}, {});
}

}  // namespace
}  // namespace concertina
