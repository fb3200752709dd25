// Communicators of the ranks that share buckets, made once for an assignment.
// Invariant: every rank of the world makes them in the same order; disjoint sets of ranks share one
// split, so a grid of stages x replicas costs one or two splits per phase whatever its size.
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
  /// The communicators of the holders of a bucket that trains, one for each phase of their
  /// exchanges. None where this rank is no holder or the only one.
  std::vector<Communicator*> find(const std::vector<int>& holders) const;

 private:
  std::map<std::vector<int>, std::vector<std::unique_ptr<Communicator>>> groups_;
};

}  // namespace concertina
