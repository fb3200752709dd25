#include "parallel/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text/number_text.h"
#include "partitioner_table.h"

namespace concertina {

#define CONCERTINA_PARTITIONER(name, symbol, ...) \
  std::vector<UnitRange> partitioner_##symbol(const std::vector<double>& costs, int parts);
CONCERTINA_PARTITIONERS(CONCERTINA_PARTITIONER)

std::span<const Entry<Partitioner>> partitioners() {
#define CONCERTINA_PARTITIONER_ENTRY(name, symbol, ...) {name, &partitioner_##symbol},
  static constexpr Entry<Partitioner> table[] = {
      CONCERTINA_PARTITIONERS(CONCERTINA_PARTITIONER_ENTRY)};
  return table;
}

namespace {

void check_cover(const std::vector<UnitRange>& ranges, int units, int parts,
                 std::string_view name) {
  CONCERTINA_CHECK(static_cast<int>(ranges.size()) == parts,
                   "partitioner '{}' returned {} ranges instead of {}", name, ranges.size(), parts);
  int next = 0;
  for (const UnitRange& range : ranges) {
    CONCERTINA_CHECK(
        range.first == next && range.last > range.first,
        "partitioner '{}' returned the range [{}, {}) instead of one that starts at {}", name,
        range.first, range.last, next);
    next = range.last;
  }
  CONCERTINA_CHECK(next == units, "partitioner '{}' covers {} units of {}", name, next, units);
}

}  // namespace

std::vector<UnitRange> single_units(int count) {
  std::vector<UnitRange> ranges;
  for (int unit = 0; unit < count; ++unit) ranges.push_back({unit, unit + 1});
  return ranges;
}

std::vector<UnitRange> partition(const std::vector<double>& costs, int parts,
                                 std::string_view name) {
  const Partitioner make = lookup(partitioners(), name, "partitioner", "parallel.partition");
  const int units = static_cast<int>(costs.size());
  if (parts < 1 || parts > units)
    throw_input(
        fmt::format("cannot split {} into {}", counted(units, "unit"), counted(parts, "stage")),
        "parallel.pp", fmt::format("between 1 and {}", counted(units, "stage")));
  for (int unit = 0; unit < units; ++unit)
    if (!std::isfinite(costs[unit]) || costs[unit] < 0)
      throw_input(fmt::format("unit {} has an invalid cost of {}", unit, costs[unit]),
                  "the partitioner's costs", "a finite cost >= 0 for each unit");
  std::vector<UnitRange> ranges = make(costs, parts);
  check_cover(ranges, units, parts, name);
  return ranges;
}

std::vector<UnitRange> partition(const std::vector<double>& costs,
                                 std::span<const double> factors) {
  const int units = static_cast<int>(costs.size()), parts = static_cast<int>(factors.size());
  std::vector<UnitRange> ranges = partition(costs, parts);
  if (std::ranges::count(factors, factors[0]) == parts) return ranges;
  // best[k][n]: smallest maximum for the first n units in k parts; start: where part k begins.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector best(parts + 1, std::vector(units + 1, kNever));
  std::vector start(parts + 1, std::vector(units + 1, 0));
  best[0][0] = 0;
  for (int part = 1; part <= parts; ++part)
    for (int last = part; last <= units; ++last) {
      double seconds = 0;
      for (int first = last - 1; first >= part - 1 && seconds < best[part][last]; --first) {
        seconds += factors[part - 1] * costs[first];
        const double most = std::max(best[part - 1][first], seconds);
        if (most < best[part][last]) best[part][last] = most, start[part][last] = first;
      }
    }
  for (int part = parts, last = units; part > 0; last = start[part--][last])
    ranges[part - 1] = {start[part][last], last};
  return ranges;
}

}  // namespace concertina
