// Partitions a model's units into contiguous stages, given a cost per unit.
// Invariant: the ranges are non-empty, ordered, and cover every unit once.
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

/// Returns `count` ranges of one unit each.
std::vector<UnitRange> single_units(int count);

/// Splits units into `parts` ranges, 1 <= parts <= costs.size(). `costs[unit]` is finite and >= 0,
/// in any unit of measure.
using Partitioner = std::vector<UnitRange> (*)(const std::vector<double>& costs, int parts);

/// Returns all partitioners listed in meson.build, by name.
std::span<const Entry<Partitioner>> partitioners();

/// Runs the partitioner `name` and checks its result. Throws if the name is unknown, if there are
/// more parts than units, or if a cost is not finite and >= 0.
std::vector<UnitRange> partition(const std::vector<double>& costs, int parts,
                                 std::string_view name = "balanced");

/// Returns the ranges that minimize the maximum of factors[i] times the cost of range i, where a
/// slow rank has a larger factor; balanced if all factors are equal.
std::vector<UnitRange> partition(const std::vector<double>& costs, std::span<const double> factors);

}  // namespace concertina
