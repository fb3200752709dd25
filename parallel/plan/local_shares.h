// What each holder of a bucket has summed when the exchange of the bucket's gradient starts.
// Invariant: pure, and the same on every rank, which knows what its peers send without asking them.
#pragma once

#include <map>
#include <vector>

#include "parallel/plan/assignment.h"

namespace concertina {

/// Caches the tree nodes of one unit's gradient on one rank. Most units of a rank have the same
/// order of microbatches.
class LocalShares {
 public:
  /// `assignment` must outlive it.
  LocalShares(const Job& job, const Assignment& assignment);

  /// Returns the share of each of `holders`. The use of a piece is an index in `bucket.uses`.
  std::vector<Share> of(const Bucket& bucket, const std::vector<int>& holders);

 private:
  const std::vector<TreeNode>& nodes(int rank, int unit);

  const Assignment& assignment_;
  const int leaves_, run_;  // leaves of a step, and microbatches of a leaf
  const std::vector<StagePlacement> stages_;
  std::vector<std::vector<int>> stages_of_;  // by rank
  /// Nodes, by the set of the rank's stages that contain the unit.
  std::map<std::vector<int>, std::vector<TreeNode>> known_;
};

}  // namespace concertina
