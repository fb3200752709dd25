#include "parallel/plan/local_shares.h"

#include <algorithm>
#include <set>

#include "core/index.h"

namespace concertina {

LocalShares::LocalShares(const Job& job, const Assignment& assignment)
    : assignment_(assignment),
      leaves_(assignment.leaves(job)),
      run_(assignment.microbatches(job) / leaves_),
      stages_(assignment.layout.stages()),
      stages_of_(at(assignment.world)) {
  for (int s = 0; s < static_cast<int>(stages_.size()); ++s)
    stages_of_[at(stages_[at(s)].rank)].push_back(s);
}

std::vector<Share> LocalShares::of(const Bucket& bucket, const std::vector<int>& holders) {
  std::vector<Share> shares(holders.size());
  for (std::size_t holder = 0; holder < holders.size(); ++holder)
    for (int use = 0; use < static_cast<int>(bucket.uses.size()); ++use)
      for (const TreeNode& node : nodes(holders[holder], bucket.uses[at(use)]))
        shares[holder].push_back({use, node});
  return shares;
}

const std::vector<TreeNode>& LocalShares::nodes(int rank, int unit) {
  std::vector<int> holding;
  for (const int s : stages_of_[at(rank)])
    if (stages_[at(s)].first_unit <= unit && unit < stages_[at(s)].last_unit) holding.push_back(s);
  const auto [known, fresh] = known_.try_emplace(holding);
  if (!fresh) return known->second;
  std::set<int> done;
  for (const Action& action : assignment_.plan.rows[at(rank)])
    if (makes_weight_gradient(action.kind) &&
        std::find(holding.begin(), holding.end(), action.stage) != holding.end())
      done.insert(action.microbatch / run_);
  for (const int leaf : done) known->second.push_back({leaf, leaf + 1});
  merges(known->second, leaves_);
  return known->second;
}

}  // namespace concertina
