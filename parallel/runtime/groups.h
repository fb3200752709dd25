// Communicators of the ranks that share buckets, created once per assignment.
// Invariant: every rank of the world creates them in the same order; disjoint sets of ranks share
// one split, so a grid of stages x replicas costs one or two splits per phase at any size.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/plan/assignment.h"

namespace concertina {

class Groups {
 public:
  /// Collective over `world`.
  Groups(Communicator& world, const Assignment& assignment);
  /// Returns the communicators of the holders of a trained bucket, one per phase of their
  /// exchanges. Empty if this rank is not a holder or is the only one.
  std::vector<Communicator*> find(const std::vector<int>& holders) const;

 private:
  std::map<std::vector<int>, std::vector<std::unique_ptr<Communicator>>> groups_;
};

}  // namespace concertina
