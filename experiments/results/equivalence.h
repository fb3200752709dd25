// Whether the difference of pairs is within a margin: two one-sided tests, and how many pairs they
// take.
// Invariants: pure; a margin is in the metric's own unit, to both sides; what too few pairs cannot
// say is absent.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace concertina {

/// Alphas, and margins, that tests take.
inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 0.49, kMostMargin = 1e9;

/// The claim that groups are as good as their baseline in a metric.
struct EquivalenceClaim {
  std::string metric;
  double margin = 0, alpha = 0.05;
  std::vector<std::string> baseline{};  // "COLUMN=VALUE"s; none: the table's
  bool operator==(const EquivalenceClaim&) const = default;
};

/// `equivalent`: the interval lies within the margin. `outside`: it lies beyond the margin.
/// `different`: neither, and the two-sided paired t test says that there is a difference.
enum class EquivalenceVerdict { too_few, equivalent, undecided, different, outside };
/// "equivalent", "not equivalent", ...
const char* name_of(EquivalenceVerdict verdict);

struct Equivalence {
  int pairs = 0;
  double difference = 0;               // mean, second minus first; NaN without pairs
  std::optional<double> deviation{};   // of the differences; from two pairs on
  std::optional<double> half_width{};  // of the interval of confidence 1 - 2 alpha
  std::optional<double> p{};           // the larger one of both tests
  EquivalenceVerdict verdict = EquivalenceVerdict::too_few;
};

/// Two one-sided paired t tests at level `alpha`, below 0.5. Pairs with a value that is not finite
/// are left out. Differences that are all the same number are equivalent (p 0) where it is below
/// the margin. Source: D. J. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15 (1987).
Equivalence test_equivalence(std::span<const std::pair<double, double>> pairs, double margin,
                             double alpha);

/// What the power of the tests depends on, besides the number of pairs.
struct EquivalenceDesign {
  double deviation = 0;  // of the differences of pairs, which are normally distributed
  double margin = 0, alpha = 0.05;
  double difference = 0;  // the true one
};
/// The chance of p < alpha: exact, the normal chance that the mean lies where the tests pass,
/// integrated over the chi distribution of the sample's deviation (no normal approximation).
/// Source: K. F. Phillips, J. Pharmacokinetics and Biopharmaceutics 18 (1990).
double equivalence_power(int pairs, const EquivalenceDesign& design);
/// The fewest pairs that have this power; nothing where up to a million have not.
std::optional<int> pairs_for_power(double power, const EquivalenceDesign& design);

}  // namespace concertina
