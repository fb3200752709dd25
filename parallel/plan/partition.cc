#include "parallel/plan/partition.h"

#include <cmath>

#include "core/error.h"
#include "parallel/plan/layout_faults.h"
#include "partitioner_table.h"

namespace concertina {

#define CONCERTINA_DECLARE(name, symbol) \
  std::vector<UnitRange> partitioner_##symbol(const std::vector<double>& costs, int parts);
CONCERTINA_PARTITIONERS(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE

std::span<const Entry<Partitioner>> partitioners() {
#define CONCERTINA_ENTRY(name, symbol) Entry<Partitioner>{name, &partitioner_##symbol},
  static constexpr Entry<Partitioner> table[] = {CONCERTINA_PARTITIONERS(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return table;
}

namespace {

void check_cover(const std::vector<UnitRange>& ranges, int units, int parts,
                 std::string_view name) {
  CONCERTINA_CHECK(static_cast<int>(ranges.size()) == parts,
                   "partitioner '{}' made {} ranges of {} asked for", name, ranges.size(), parts);
  int next = 0;
  for (const UnitRange& range : ranges) {
    CONCERTINA_CHECK(range.first == next && range.last > range.first,
                     "partitioner '{}' made the range [{}, {}) where one from {} on was due", name,
                     range.first, range.last, next);
    next = range.last;
  }
  CONCERTINA_CHECK(next == units, "partitioner '{}' covers {} units of {}", name, next, units);
}

}  // namespace

std::vector<UnitRange> partition(const std::vector<double>& costs, int parts,
                                 std::string_view name) {
  const Partitioner make = lookup(partitioners(), name, "partitioner", "parallel.partition");
  const int units = static_cast<int>(costs.size());
  if (parts < 1 || parts > units) throw faults::no_such_cut(units, parts);
  for (int unit = 0; unit < units; ++unit)
    if (!std::isfinite(costs[unit]) || costs[unit] < 0)
      throw_input(fmt::format("unit {} costs {}", unit, costs[unit]), "the partitioner's costs",
                  "a finite cost >= 0 for each unit");
  std::vector<UnitRange> ranges = make(costs, parts);
  check_cover(ranges, units, parts, name);
  return ranges;
}

}  // namespace concertina
