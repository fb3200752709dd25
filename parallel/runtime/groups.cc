#include "parallel/runtime/groups.h"

#include <algorithm>
#include <set>

namespace concertina {
namespace {

using Ranks = std::vector<int>;

/// Greedy: each round takes the sets, in order, that touch no rank of the round.
std::vector<std::vector<Ranks>> disjoint_rounds(const std::set<Ranks>& sets) {
  std::vector<std::vector<Ranks>> rounds;
  std::vector<std::set<int>> taken;
  for (const Ranks& ranks : sets) {
    const auto free = [&](const std::set<int>& used) {
      return std::none_of(ranks.begin(), ranks.end(), [&](int r) { return used.contains(r); });
    };
    std::size_t round = 0;
    while (round < rounds.size() && !free(taken[round])) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      taken.emplace_back();
    }
    rounds[round].push_back(ranks);
    taken[round].insert(ranks.begin(), ranks.end());
  }
  return rounds;
}

}  // namespace

Groups::Groups(Communicator& world, const std::vector<Ranks>& sets) {
  std::set<Ranks> distinct;
  for (const Ranks& ranks : sets)
    if (ranks.size() > 1) distinct.insert(ranks);
  for (const auto& round : disjoint_rounds(distinct)) {
    int color = -1;
    for (std::size_t i = 0; i < round.size(); ++i)
      if (std::binary_search(round[i].begin(), round[i].end(), world.rank()))
        color = static_cast<int>(i);
    std::unique_ptr<Communicator> group = world.split(color, world.rank());
    if (color >= 0) groups_[round[static_cast<std::size_t>(color)]] = std::move(group);
  }
}

Communicator* Groups::find(const Ranks& set) const {
  const auto at = groups_.find(set);
  return at == groups_.end() ? nullptr : at->second.get();
}

}  // namespace concertina
