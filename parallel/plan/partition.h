// Cuts a model's units into contiguous stages, from a cost per unit.
// Invariant: the ranges are non-empty, in order, and hold every unit once.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/registry.h"

namespace concertina {

/// Units [first, last).
struct UnitRange {
  int first = 0, last = 0;
  bool operator==(const UnitRange&) const = default;
};

/// `costs[unit]` in seconds or FLOPs (any one unit of measure), finite and >= 0, into `parts`
/// ranges, 1 <= parts <= costs.size().
using Partitioner = std::vector<UnitRange> (*)(const std::vector<double>& costs, int parts);

/// Every partitioner of the list in meson.build, by name.
std::span<const Entry<Partitioner>> partitioners();

/// Runs the partitioner called `name` and checks what it returns. Errors: an unknown name, more
/// parts than units, a cost that is no number.
std::vector<UnitRange> partition(const std::vector<double>& costs, int parts,
                                 std::string_view name = "balanced");

/// The ranges of which the longest takes least where range i takes `factors[i]` times its costs, as
/// on a slow rank; balanced where all factors are equal.
std::vector<UnitRange> partition(const std::vector<double>& costs, std::span<const double> factors);

}  // namespace concertina
