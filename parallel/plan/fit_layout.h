// Whether a layout, or the grid that is asked for, fits a model and a world.
// Invariant: pure; what does not fit is bad input that names the config key at fault.
#pragma once

#include <optional>

#include "parallel/plan/layout.h"

namespace concertina {

/// The numbers that a layout has to fit. A leaf of the canonical reduction tree
/// (parallel/plan/reduction_tree.h) is a run of microbatches / leaves microbatches that no two
/// pipelines may share.
struct LayoutLimits {
  int world = 1, units = 1, microbatches = 1, leaves = 1;
};

/// All grids that fit, by ascending pp: pp x dp = world, pp x chunks <= units, pipelines <= leaves.
std::vector<Grid> fitting_grids(const LayoutLimits& limits, Folding folding = {});

/// The grid that is asked for: what is left out follows from the world size; if both are, it is the
/// fitting one with the fewest stages (replicas have no bubble). Throws a fault that lists the
/// grids that fit.
Grid fit(const LayoutLimits& limits, std::optional<int> pp, std::optional<int> dp,
         Folding folding = {});

/// Throws the first fault unless each pipeline holds every unit once and in order, the pipelines
/// hold every microbatch once and cut between leaves only, and limits.world ranks work: all of
/// [0, world), or any of them where the world has more (0: it has not).
void validate(const Layout& layout, const LayoutLimits& limits, int world = 0);

}  // namespace concertina
