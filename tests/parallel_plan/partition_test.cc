// Partitioners: the ranges cover all units, and `balanced` is optimal.
#include "parallel/plan/partition.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/errors.h"

namespace concertina {
namespace {

std::pair<double, double> metrics(const std::vector<double>& costs,
                                  const std::vector<UnitRange>& ranges) {
  double largest = 0, squares = 0;
  for (const UnitRange& range : ranges) {
    const double cost =
        std::accumulate(costs.begin() + range.first, costs.begin() + range.last, 0.0);
    largest = std::max(largest, cost);
    squares += cost * cost;
  }
  return {largest, squares};
}

/// Returns the largest cost of a range, where range i takes factors[i] times its costs.
double longest(const std::vector<double>& costs, const std::vector<double>& factors,
               const std::vector<UnitRange>& ranges) {
  double most = 0;
  for (std::size_t part = 0; part < factors.size(); ++part)
    most = std::max(most, factors[part] * metrics(costs, {ranges.at(part)}).first);
  return most;
}

void all_ways(int units, int parts,
              const std::function<void(const std::vector<UnitRange>&)>& take) {
  std::vector<UnitRange> ranges;
  const std::function<void(int)> cut = [&](int first) {
    const int left = parts - static_cast<int>(ranges.size());
    if (left == 0) take(ranges);
    for (int last = left == 1 ? units : first + 1; left > 0 && last <= units - left + 1; ++last) {
      ranges.push_back({first, last});
      cut(last);
      ranges.pop_back();
    }
  };
  cut(0);
}

/// Returns the best (largest, squares) of all ways to cut.
std::pair<double, double> best_of_all(const std::vector<double>& costs, int parts) {
  std::pair<double, double> best{std::numeric_limits<double>::infinity(), 0};
  all_ways(static_cast<int>(costs.size()), parts, [&](const std::vector<UnitRange>& ranges) {
    best = std::min(best, metrics(costs, ranges));
  });
  return best;
}

TEST(Partition, BalancedIsOptimal) {
  EXPECT_TRUE(rc::check([] {
    const int units = *rc::gen::inRange(1, 10);
    const int parts = *rc::gen::inRange(1, units + 1);
    std::vector<double> costs;  // integers, so that sums are exact
    for (int unit = 0; unit < units; ++unit) costs.push_back(*rc::gen::inRange(0, 20));
    RC_ASSERT(metrics(costs, partition(costs, parts)) == best_of_all(costs, parts));
  }));
}

TEST(Partition, BalancedManagesFractions) {
  // The limit of the second pass is a sum computed by the first; both must round in the same way.
  EXPECT_TRUE(rc::check([] {
    std::vector<double> costs;
    for (int unit = *rc::gen::inRange(8, 40); unit > 0; --unit)
      costs.push_back(*rc::gen::inRange(1, 1000) / 977.0);
    const int parts = *rc::gen::inRange(1, 9);
    const auto ranges = partition(costs, parts);
    RC_ASSERT(static_cast<int>(ranges.size()) == parts);
    RC_ASSERT(ranges == partition(costs, parts));
  }));
}

TEST(Partition, OfUnlikeFactorsTheLongestTakesLeast) {
  EXPECT_TRUE(rc::check([] {
    const int units = *rc::gen::inRange(1, 9);
    std::vector<double> costs, factors;
    for (int unit = 0; unit < units; ++unit) costs.push_back(*rc::gen::inRange(0, 20));
    for (int part = *rc::gen::inRange(1, units + 1); part > 0; --part)
      factors.push_back(*rc::gen::inRange(1, 5));
    double best = std::numeric_limits<double>::infinity();
    all_ways(units, static_cast<int>(factors.size()), [&](const std::vector<UnitRange>& ranges) {
      best = std::min(best, longest(costs, factors, ranges));
    });
    RC_ASSERT(longest(costs, factors, partition(costs, factors)) == best);
  }));
}

TEST(Partition, EveryPartitionerCovers) {
  for (const Entry<Partitioner>& entry : partitioners()) {
    for (int units = 1; units <= 12; ++units) {
      for (int parts = 1; parts <= units; ++parts) {
        const auto ranges = partition(std::vector<double>(units, 1.0), parts, entry.name);
        int next = 0;
        for (const UnitRange& range : ranges) {
          EXPECT_EQ(range.first, next);
          EXPECT_TRUE(range.last - range.first == units / parts ||
                      range.last - range.first == units / parts + 1);
          next = range.last;
        }
        EXPECT_EQ(next, units);
      }
    }
  }
}

TEST(Partition, UniformIgnoresCosts) {
  EXPECT_EQ(partition({100, 1, 1, 1, 1}, 2, "uniform"), (std::vector<UnitRange>{{0, 3}, {3, 5}}));
  EXPECT_EQ(partition({100, 1, 1, 1, 1}, 2, "balanced"), (std::vector<UnitRange>{{0, 1}, {1, 5}}));
}

TEST(Partition, RefusesWhatCannotBe) {
  const Error error = input_error([&] { partition({1, 1, 1}, 4); });
  EXPECT_EQ(error.message(), "cannot split 3 units into 4 stages");
  EXPECT_EQ(error.fix(), "between 1 and 3 stages");
  EXPECT_THROW(partition({1, 1}, 0), Error);
  EXPECT_THROW(partition({1, -1}, 1), Error);
  EXPECT_THROW(partition({1, std::numeric_limits<double>::quiet_NaN()}, 1), Error);
  EXPECT_THROW(partition({1}, 1, "best"), Error);
}

}  // namespace
}  // namespace concertina
