// The assignments that a run could change to.
// Invariant: pure. There are at most two kinds of replicas, each with one partition.
#pragma once

#include <vector>

#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Schedule, depth and replicas; the remaining ranks are spare.
struct LayoutCandidate {
  std::string_view schedule;
  Folding folding;
  Grid grid;
  /// Further replicas, with fewer stages or, if ranks differ, equally many; dp = 0: none.
  Grid other{.pp = 0, .dp = 0};
  int leaves = 0;  // number of leaves summed on `grid`, if there are other replicas
  std::vector<int> ranks_in_order{};  // order in which stages use ranks, spare ones last; empty: by
                                      // number
  int ranks() const { return grid.pp * grid.dp + other.pp * other.dp; }
  /// Number of stages of one replica of each kind; the stages of `other` come last.
  int stages() const { return grid.pp * folding.chunks + other.pp; }
};

/// Returns all candidates allowed by `view.options`, those with the most working ranks first.
/// Depths are all numbers up to 16, then divisors of the world size; numbers of replicas are all up
/// to 8, then powers of two and the maximum. With one stage per rank, two depths are combined: in
/// all ways for at most 8 ranks, in larger worlds only without spare ranks; likewise two kinds with
/// the same depth if ranks differ. A schedule file fixes the layout, so it has no candidates.
std::vector<LayoutCandidate> layout_candidates(const LayoutView& view);

/// Returns the request for `candidate` with the partition `cuts`, which has stages() ranges.
Request request_for(const LayoutView& view, const LayoutCandidate& candidate,
                    const std::vector<UnitRange>& cuts);

}  // namespace concertina
