// What a study claims: that groups of trials are as good as a baseline. The tests are in Python.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// The levels of significance, and the margins, that tests accept.
inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 0.49, kMostMargin = 1e9;

/// The claim that groups are as good as their baseline in a metric.
struct EquivalenceClaim {
  std::string metric;
  double margin = 0, alpha = 0.05;
  std::vector<std::string> baseline{};  // "COLUMN=VALUE"s; none: the table's
  bool operator==(const EquivalenceClaim&) const = default;
};

}  // namespace concertina
