// Statistics of a figure's samples: mean, spread, interval, and whether two of them differ.
// Invariants: values that are not finite are counted, never averaged; what a sample is too small to
// say is absent, not zero.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace concertina {

struct SampleSummary {
  int n = 0;                         // finite values, of which all below is
  int nan = 0, infinite = 0;         // left out
  double mean = 0;                   // NaN if n = 0
  std::optional<double> sd;          // of the sample (divisor n - 1); from n = 2 on
  std::optional<double> half_width;  // the interval of the mean is mean +- this; from n = 2 on
};

/// `confidence`, of the interval of the mean by Student's t, lies between 0 and 1. The mean of
/// equal values is that value, and their sd is 0, exactly.
SampleSummary summarize(std::span<const double> values, double confidence);

enum class SignificanceTest { none, paired_t, wilcoxon, welch };
/// The name as people read it: "paired t test".
const char* name_of(SignificanceTest test);

struct SampleDifference {
  SignificanceTest test = SignificanceTest::none;  // none: too few values for one
  int pairs = 0;                                   // that were compared; 0 where nothing pairs
  double difference = 0;                           // of the means, second minus first
  std::optional<double> half_width{};  // of the interval of the difference; not of Wilcoxon's
  std::optional<double> p{};           // two-sided
};

/// `test`: paired_t or wilcoxon, from two pairs on. Pairs with a value that is not finite are left
/// out. If all differences are the same number there is no spread to compare it with: p is 1 where
/// that number is zero and 0 (the limit) where it is another, by the paired t test.
/// Wilcoxon's signed rank test leaves out differences of zero (p is 1 if no other is left) and
/// gives equal ones the mean of their ranks; p is exact, from all signs of these ranks, up to 200
/// differences, and beyond from the normal distribution with correction for ties and continuity.
/// Source: W. J. Conover, Practical Nonparametric Statistics (1999), section 5.7.
SampleDifference compare_pairs(std::span<const std::pair<double, double>> pairs,
                               SignificanceTest test, double confidence);

/// Welch's t test, if each sample has at least two values; samples without spread as above.
/// Source: B. L. Welch, Biometrika 34 (1947).
SampleDifference compare_samples(std::span<const double> first, std::span<const double> second,
                                 double confidence);

/// Holm's step-down correction: of each p the one that keeps the chance of any false positive among
/// all of them at the level that a single test would have; never below p, at most 1.
/// Source: S. Holm, Scandinavian Journal of Statistics 6 (1979).
std::vector<double> holm(std::span<const double> p);

}  // namespace concertina
