#include "parallel/predict/rank_factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
namespace {

constexpr int kMostRounds = 1000;
constexpr double kConverged = 1e-9;

/// Measurements of one kind on one rank.
struct Cell {
  double logs = 0, passes = 0;  // sum of the logarithms of seconds
};
using Cells = std::vector<std::vector<Cell>>;  // by rank and kind

Cells cells_of(const std::vector<std::vector<double>>& seconds, const std::vector<int>& kinds) {
  const int count = kinds.empty() ? 0 : *std::ranges::max_element(kinds) + 1;
  Cells cells(seconds.size(), std::vector<Cell>(at(count)));
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    CONCERTINA_CHECK(seconds[rank].size() == kinds.size(), "{} passes of {} kinds",
                     seconds[rank].size(), kinds.size());
    for (std::size_t pass = 0; pass < kinds.size(); ++pass) {
      if (seconds[rank][pass] <= 0) continue;
      Cell& cell = cells[rank][at(kinds[pass])];
      cell.logs += std::log(seconds[rank][pass]);
      ++cell.passes;
    }
  }
  return cells;
}

/// Alternately fits the factors to the kinds and the kinds to the factors. The result is unique up
/// to a scale per group of ranks.
std::vector<double> fit(const Cells& cells) {
  const std::size_t kinds = cells.empty() ? 0 : cells[0].size();
  std::vector<double> logs(cells.size()), counts(cells.size());
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<double> sums(kinds), passes(kinds);
    for (std::size_t rank = 0; rank < cells.size(); ++rank)
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        const Cell& cell = cells[rank][kind];
        sums[kind] += cell.logs - cell.passes * logs[rank];
        passes[kind] += cell.passes;
      }
    double moved = 0;
    for (std::size_t rank = 0; rank < cells.size(); ++rank) {
      double sum = 0, count = 0;
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        const Cell& cell = cells[rank][kind];
        if (cell.passes == 0) continue;
        sum += cell.logs - cell.passes * sums[kind] / passes[kind];
        count += cell.passes;
      }
      const double log = count > 0 ? sum / count : 0;
      moved = std::max(moved, std::abs(log - logs[rank]));
      logs[rank] = log;
      counts[rank] = count;
    }
    if (moved < kConverged) break;
  }
  for (std::size_t rank = 0; rank < cells.size(); ++rank)
    logs[rank] = counts[rank] > 0 ? std::exp(logs[rank]) : 0;
  return logs;
}

/// The group of each rank, given as the group's first rank. Ranks with a common kind form a group.
std::vector<std::size_t> groups_of(const Cells& cells) {
  std::vector<std::size_t> groups(cells.size());
  std::iota(groups.begin(), groups.end(), 0);
  for (bool joined = true; joined;) {
    joined = false;
    for (std::size_t kind = 0; kind < cells[0].size(); ++kind) {
      std::size_t first = cells.size();
      for (std::size_t rank = 0; rank < cells.size(); ++rank)
        if (cells[rank][kind].passes > 0) first = std::min(first, groups[rank]);
      for (std::size_t rank = 0; rank < cells.size(); ++rank)
        if (cells[rank][kind].passes > 0 && groups[rank] != first)
          groups[rank] = first, joined = true;
    }
  }
  return groups;
}

}  // namespace

std::vector<int> pass_kinds(const std::vector<UnitCost>& costs) {
  std::map<std::array<double, 6>, int> known;
  std::vector<int> kinds;
  for (const UnitCost& cost : costs) {
    const std::array work{cost.forward_flops, cost.input_flops, cost.weight_flops,
                          cost.forward_moved, cost.input_moved, cost.dropped};
    const int kind = known.try_emplace(work, static_cast<int>(known.size())).first->second;
    for (int pass = 0; pass < 3; ++pass) kinds.push_back(3 * kind + pass);
  }
  return kinds;
}

std::vector<double> rank_factors(const std::vector<std::vector<double>>& seconds,
                                 const std::vector<int>& kinds) {
  if (seconds.empty()) return {};
  const Cells cells = cells_of(seconds, kinds);
  std::vector<double> factors = fit(cells);
  std::map<std::size_t, std::vector<double>> members;
  const std::vector<std::size_t> groups = groups_of(cells);
  for (std::size_t rank = 0; rank < factors.size(); ++rank)
    members[groups[rank]].push_back(factors[rank]);
  for (auto& [group, all] : members)
    std::ranges::nth_element(all, all.begin() + (std::ssize(all) - 1) / 2);
  for (std::size_t rank = 0; rank < factors.size(); ++rank) {
    if (factors[rank] == 0) continue;
    const std::vector<double>& all = members[groups[rank]];
    factors[rank] /= all[(all.size() - 1) / 2];
    if (std::abs(factors[rank] - 1) <= kSameRank) factors[rank] = 1;
  }
  return factors;
}

}  // namespace concertina
