// The assignments that a run could go on with.
// Invariant: pure. There are at most two kinds of replicas; those of one have the same cuts.
#pragma once

#include <vector>

#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Schedule, depth and replicas; what is left over of the world is spare.
struct LayoutCandidate {
  std::string_view schedule;
  Folding folding;
  Grid grid;
  /// Further replicas: of fewer stages, or of as many where ranks differ; dp = 0: none.
  Grid other{.pp = 0, .dp = 0};
  int leaves = 0;  // of a step's gradient sum that `grid` has, where there are others
  std::vector<int> ranks_in_order{};  // as stages take them, the spare ones last; empty: by number
  int ranks() const { return grid.pp * grid.dp + other.pp * other.dp; }
  /// The stages of a replica of each depth, those of `other` last.
  int stages() const { return grid.pp * folding.chunks + other.pp; }
};

/// All that `view.options` allows, those with most working ranks first: every depth up to 16, then
/// divisors of the world, each with every number of replicas up to 8, then powers of two and as
/// many as there is room for. Of two depths where every rank has one stage: all that at most 8
/// ranks allow, in larger worlds those that leave no rank spare; likewise of two kinds of one depth
/// where ranks differ. A schedule file keeps its layout and has none.
std::vector<LayoutCandidate> layout_candidates(const LayoutView& view);

/// The request for `candidate` with these cuts of a replica, stages() of them.
Request request_for(const LayoutView& view, const LayoutCandidate& candidate,
                    const std::vector<UnitRange>& cuts);

}  // namespace concertina
