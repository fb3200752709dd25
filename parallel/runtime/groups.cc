#include "parallel/runtime/groups.h"

#include <algorithm>

namespace concertina {

using Ranks = std::vector<int>;

Groups::Groups(Communicator& world, const Assignment& assignment) {
  std::map<Ranks, std::size_t> phases;
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b)
    if (const Ranks& ranks = assignment.owners[b].ranks;
        !assignment.buckets[b].frozen && ranks.size() > 1 && !phases.contains(ranks))
      phases[ranks] = assignment.exchange.find().row(assignment.exchange.shape(ranks), 0).size();
  for (std::size_t phase = 0; !phases.empty(); ++phase) {
    std::erase_if(phases, [&](const auto& set) { return set.second == phase; });
    std::vector<Ranks> sets;
    for (const auto& [ranks, count] : phases) sets.push_back(ranks);
    for (const auto& round : disjoint_rounds(sets)) {
      int color = -1;
      for (std::size_t i = 0; i < round.size(); ++i)
        if (std::binary_search(round[i].begin(), round[i].end(), world.rank()))
          color = static_cast<int>(i);
      std::unique_ptr<Communicator> group = world.split(color, world.rank());
      if (color >= 0) groups_[round[static_cast<std::size_t>(color)]].push_back(std::move(group));
    }
  }
}

std::vector<Communicator*> Groups::find(const Ranks& holders) const {
  std::vector<Communicator*> found;
  if (const auto entry = groups_.find(holders); entry != groups_.end())
    for (const auto& group : entry->second) found.push_back(group.get());
  return found;
}

}  // namespace concertina
