// The partition with the smallest maximum stage cost, by exact dynamic programming. The last range
// of the best partition costs no more than the maximum, so only such ranges are tried: O(units^2)
// for similar costs, O(units^2 parts) at most.
// Of all optimal partitions, it selects the one with the smallest sum of squared stage costs; ties
// go to the earliest boundaries (compared from the last), so the result depends on costs alone.
#include <algorithm>
#include <limits>

#include "parallel/plan/partition.h"

namespace concertina {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// value[k][n]: best value of the first n units in k ranges; start[k][n]: start of the last.
struct Table {
  std::vector<std::vector<double>> value;
  std::vector<std::vector<int>> start;
};

/// `extend(value so far, cost of one more range)` returns the value with that range. Smaller is
/// better, and it grows with both arguments. Among equal values, the range that starts first wins.
template <class Extend>
Table solve(const std::vector<double>& prefix, int parts, Extend extend) {
  const int units = static_cast<int>(prefix.size()) - 1;
  Table table{std::vector(parts + 1, std::vector(units + 1, kNever)),
              std::vector(parts + 1, std::vector(units + 1, 0))};
  table.value[0][0] = 0;
  for (int part = 1; part <= parts; ++part) {
    for (int last = part; last <= units; ++last) {
      double& best = table.value[part][last];
      for (int first = last - 1; first >= part - 1; --first) {
        const double cost = prefix[last] - prefix[first], alone = extend(0, cost);
        if (alone > best || alone == kNever) break;  // longer ranges cost more
        const double value = extend(table.value[part - 1][first], cost);
        if (value == kNever || value > best) continue;
        best = value;
        table.start[part][last] = first;
      }
    }
  }
  return table;
}

}  // namespace

std::vector<UnitRange> partitioner_balanced(const std::vector<double>& costs, int parts) {
  const int units = static_cast<int>(costs.size());
  std::vector<double> prefix{0};
  for (const double cost : costs) prefix.push_back(prefix.back() + cost);

  const Table largest =
      solve(prefix, parts, [](double so_far, double cost) { return std::max(so_far, cost); });
  const double limit = largest.value[parts][units];
  const Table squares = solve(prefix, parts, [limit](double so_far, double cost) {
    return cost > limit ? kNever : so_far + cost * cost;
  });

  std::vector<UnitRange> ranges(parts);
  for (int part = parts, last = units; part > 0; --part) {
    ranges[part - 1] = {squares.start[part][last], last};
    last = squares.start[part][last];
  }
  return ranges;
}

}  // namespace concertina
