// The assignments that a run could go on with.
// Invariant: pure. Uneven pipelines are not among them: all replicas have the same cuts.
#pragma once

#include <vector>

#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Schedule, depth and replicas; what is left over of the world is spare.
struct LayoutCandidate {
  std::string_view schedule;
  Folding folding;
  Grid grid;
  int ranks() const { return grid.pp * grid.dp; }
};

/// All that `view.options` allows, those with most working ranks first: every depth up to 16, then
/// divisors of the world, each with as many replicas as there is room for. A schedule file keeps
/// its layout and has none.
std::vector<LayoutCandidate> layout_candidates(const LayoutView& view);

/// The request for `candidate` with these cuts, grid.pp * folding.chunks of them.
Request request_for(const LayoutView& view, const LayoutCandidate& candidate,
                    const std::vector<UnitRange>& cuts);

}  // namespace concertina
