// Communicators for sets of ranks, made once for a layout.
// Invariant: every rank of `world` makes them in the same order; disjoint sets share one split, so
// a grid of stages x replicas costs one or two splits whatever its size.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

class Groups {
 public:
  /// Collective over `world`. `sets`: each ascending; sets of one rank get no communicator.
  Groups(Communicator& world, const std::vector<std::vector<int>>& sets);
  /// Null where this rank is not in `set` or the set has one rank.
  Communicator* find(const std::vector<int>& set) const;

 private:
  std::map<std::vector<int>, std::unique_ptr<Communicator>> groups_;
};

}  // namespace concertina
