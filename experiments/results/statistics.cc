#include "experiments/results/statistics.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace concertina {
namespace {

constexpr int kMostExact = 200;  // differences: their distribution has n (n + 1) / 2 values

struct Moments {
  int n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double variance = 0;  // divisor n - 1
};

/// The moments of finite values. Sums are of distances to the first value: equal values have a mean
/// that is exactly theirs.
Moments moments_of(std::span<const double> values) {
  Moments moments;
  moments.n = static_cast<int>(values.size());
  if (values.empty()) return moments;
  const long double first = values[0];
  long double sum = 0;
  for (const double value : values) sum += value - first;
  const long double mean = first + sum / moments.n;
  long double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  moments.mean = static_cast<double>(mean);
  if (moments.n > 1) moments.variance = static_cast<double>(squares / (moments.n - 1));
  return moments;
}

double t_quantile(double freedom, double confidence) {
  const boost::math::students_t distribution(freedom);
  return quantile(complement(distribution, (1 - confidence) / 2));
}

/// Two-sided; without spread, 1 for no difference and 0, the limit, for any other.
double p_of_t(double difference, double error, double freedom) {
  if (difference == 0) return 1;
  const double t = std::abs(difference) / error;
  if (!std::isfinite(t)) return 0;
  return 2 * cdf(complement(boost::math::students_t(freedom), t));
}

/// Twice the rank of each value's size, so that the mean rank of equal sizes is a whole number.
std::vector<int> doubled_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) { return std::abs(values[i]); };
  std::ranges::stable_sort(order, {}, size);
  std::vector<int> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && size(order[end]) == size(order[begin])) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<int>(begin + end + 1);
  }
  return ranks;
}

/// The chance that ranks with random signs have a sum of positive ones that is as far from its mean
/// as `sum`: exact, from the distribution of the sum over all signs.
double exact_p(const std::vector<int>& ranks, int sum) {
  const int total = std::accumulate(ranks.begin(), ranks.end(), 0);
  std::vector<double> chance(static_cast<std::size_t>(total) + 1);
  chance[0] = 1;
  for (const int rank : ranks)
    for (std::size_t at = chance.size(); at-- > 0;) {
      const auto step = static_cast<std::size_t>(rank);
      chance[at] = 0.5 * (chance[at] + (at >= step ? chance[at - step] : 0));
    }
  const auto tail = chance.begin() + std::min(sum, total - sum) + 1;
  return std::min(1.0, 2 * std::accumulate(chance.begin(), tail, 0.0));
}

/// The same from the normal distribution. The variance of the sum is that of its ranks over four,
/// with or without ties; half a rank is the correction for continuity.
double normal_p(const std::vector<int>& ranks, int sum) {
  double mean = 0, variance = 0;
  for (const double rank : ranks) {
    mean += rank / 2;
    variance += rank * rank / 4;
  }
  const double distance = std::max(0.0, std::abs(sum - mean) - 1) / std::sqrt(variance);
  return std::min(1.0, 2 * cdf(complement(boost::math::normal(), distance)));
}

double wilcoxon_p(std::vector<double> differences) {
  std::erase(differences, 0.0);
  if (differences.empty()) return 1;
  const std::vector<int> ranks = doubled_ranks(differences);
  int sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (differences[i] > 0) sum += ranks[i];
  return std::ssize(ranks) <= kMostExact ? exact_p(ranks, sum) : normal_p(ranks, sum);
}

}  // namespace

SampleSummary summarize(std::span<const double> values, double confidence) {
  SampleSummary summary;
  std::vector<double> finite;
  for (const double value : values) {
    summary.nan += std::isnan(value);
    summary.infinite += std::isinf(value);
    if (std::isfinite(value)) finite.push_back(value);
  }
  const Moments moments = moments_of(finite);
  summary.n = moments.n;
  summary.mean = moments.mean;
  if (summary.n < 2) return summary;
  summary.sd = std::sqrt(moments.variance);
  const double error = *summary.sd / std::sqrt(static_cast<double>(summary.n));
  summary.half_width = error > 0 ? error * t_quantile(summary.n - 1, confidence) : 0;
  return summary;
}

const char* name_of(SignificanceTest test) {
  constexpr std::array kNames = {"no test", "paired t test", "Wilcoxon signed rank test",
                                 "Welch's t test"};
  return kNames.at(static_cast<std::size_t>(test));
}

SampleDifference compare_pairs(std::span<const std::pair<double, double>> pairs,
                               SignificanceTest test, double confidence) {
  CONCERTINA_CHECK(test == SignificanceTest::paired_t || test == SignificanceTest::wilcoxon,
                   "{} is not for pairs", name_of(test));
  std::vector<double> differences;
  for (const auto& [first, second] : pairs)
    if (std::isfinite(first) && std::isfinite(second)) differences.push_back(second - first);
  const Moments moments = moments_of(differences);
  SampleDifference result{.pairs = moments.n, .difference = moments.mean};
  if (moments.n < 2) return result;
  result.test = test;
  if (test == SignificanceTest::wilcoxon) {
    result.p = wilcoxon_p(differences);
    return result;
  }
  const double freedom = moments.n - 1, error = std::sqrt(moments.variance / moments.n);
  result.p = p_of_t(moments.mean, error, freedom);
  result.half_width = error > 0 ? error * t_quantile(freedom, confidence) : 0;
  return result;
}

SampleDifference compare_samples(std::span<const double> first, std::span<const double> second,
                                 double confidence) {
  const auto finite = [](std::span<const double> values) {
    std::vector<double> kept;
    std::ranges::copy_if(values, std::back_inserter(kept),
                         [](double v) { return std::isfinite(v); });
    return moments_of(kept);
  };
  const Moments a = finite(first), b = finite(second);
  SampleDifference result{.difference = b.mean - a.mean};
  if (a.n < 2 || b.n < 2) return result;
  result.test = SignificanceTest::welch;
  const double square_a = a.variance / a.n, square_b = b.variance / b.n;
  const double error = std::sqrt(square_a + square_b);
  if (!(error > 0)) {
    result.p = result.difference == 0 ? 1 : 0;
    result.half_width = 0;
    return result;
  }
  // Welch-Satterthwaite, in shares of the sum, which do not underflow.
  const double share = square_a / (square_a + square_b);
  const double freedom = 1 / (share * share / (a.n - 1) + (1 - share) * (1 - share) / (b.n - 1));
  result.p = p_of_t(result.difference, error, freedom);
  result.half_width = error * t_quantile(freedom, confidence);
  return result;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> corrected(p.size());
  double last = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    last = std::min(1.0, std::max(last, static_cast<double>(p.size() - rank) * p[order[rank]]));
    corrected[order[rank]] = last;
  }
  return corrected;
}

}  // namespace concertina
