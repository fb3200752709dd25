#include "experiments/results/equivalence.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "experiments/results/statistics.h"

namespace concertina {
namespace {

using boost::math::students_t;

EquivalenceVerdict verdict_of(const Equivalence& result, double p_of_difference, double margin,
                              double alpha) {
  if (*result.p < alpha) return EquivalenceVerdict::equivalent;
  if (std::abs(result.difference) - *result.half_width >= margin)
    return EquivalenceVerdict::outside;
  return p_of_difference < alpha ? EquivalenceVerdict::different : EquivalenceVerdict::undecided;
}

}  // namespace

const char* name_of(EquivalenceVerdict verdict) {
  constexpr std::array kNames = {"too few pairs", "equivalent", "undecided", "different",
                                 "not equivalent"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Equivalence test_equivalence(std::span<const std::pair<double, double>> pairs, double margin,
                             double alpha) {
  const SampleDifference sample = compare_pairs(pairs, SignificanceTest::paired_t, 1 - 2 * alpha);
  Equivalence result{.pairs = sample.pairs, .difference = sample.difference};
  if (sample.pairs < 2) return result;
  const students_t distribution(sample.pairs - 1);
  result.half_width = sample.half_width;
  const double error = *sample.half_width / quantile(complement(distribution, alpha));
  result.deviation = error * std::sqrt(static_cast<double>(sample.pairs));
  const double room = margin - std::abs(sample.difference);  // to the nearer end of the margin
  if (error > 0 && std::isfinite(room))
    result.p = cdf(complement(distribution, room / error));
  else
    result.p = room > 0 ? 0 : 1;
  result.verdict = verdict_of(result, *sample.p, margin, alpha);
  return result;
}

double equivalence_power(int pairs, const EquivalenceDesign& design) {
  const double freedom = pairs - 1, root = std::sqrt(static_cast<double>(pairs));
  if (!(design.deviation > 0)) return std::abs(design.difference) < design.margin ? 1 : 0;
  // In units of the true error of the mean. `share`: of the sample's deviation in the true one.
  const double unit = design.deviation / root, margin = design.margin / unit,
               difference = design.difference / unit;
  const double t = quantile(complement(students_t(freedom), design.alpha));
  const boost::math::normal normal;
  const double constant =
      std::log(2.0) + freedom / 2 * std::log(freedom / 2) - boost::math::lgamma(freedom / 2);
  const auto chance = [&](double share) {
    if (!(share > 0)) return 0.0;
    const double density =
        std::exp(constant + (freedom - 1) * std::log(share) - freedom * share * share / 2);
    const double reach = margin - t * share;  // the mean passes within it
    return density * (cdf(normal, reach - difference) - cdf(normal, -reach - difference));
  };
  // Beyond ten of its own deviations the chi distribution has nothing that a double can add.
  const double wide = 10 / std::sqrt(2 * freedom);
  const double low = std::max(0.0, 1 - wide), high = std::min(margin / t, 1 + wide);
  if (high <= low) return 0;
  const double power =
      boost::math::quadrature::gauss_kronrod<double, 61>::integrate(chance, low, high, 10, 1e-11);
  return std::clamp(power, 0.0, 1.0);
}

std::optional<int> pairs_for_power(double power, const EquivalenceDesign& design) {
  constexpr int kMost = 1'000'000;
  // Beyond the margin any number of pairs has alpha at most.
  if (std::abs(design.difference) >= design.margin && power > design.alpha) return std::nullopt;
  int enough = 2, few = 1;
  while (equivalence_power(enough, design) < power) {
    if (enough == kMost) return std::nullopt;
    few = enough;
    enough = std::min(2 * enough, kMost);
  }
  while (enough - few > 1) {
    const int middle = (few + enough) / 2;
    (equivalence_power(middle, design) < power ? few : enough) = middle;
  }
  return enough;
}

}  // namespace concertina
