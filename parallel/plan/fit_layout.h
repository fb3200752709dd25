// Whether a layout or a requested grid fits a model and a world.
// Invariant: pure; every mismatch throws an Error{bad_input} that names the config key to change.
#pragma once

#include <optional>

#include "parallel/plan/layout.h"

namespace concertina {

/// The numbers that a layout must fit. A leaf of the canonical reduction tree
/// (parallel/plan/reduction_tree.h) consists of microbatches / leaves microbatches and belongs to a
/// single pipeline.
struct LayoutLimits {
  int world = 1, units = 1, microbatches = 1, leaves = 1;
};

/// All grids that fit, by ascending pp: pp x dp = world, pp x chunks <= units, pipelines <= leaves.
std::vector<Grid> fitting_grids(const LayoutLimits& limits, Folding folding = {});

/// Returns the requested grid. A missing number follows from the world size. If both are missing,
/// the result is the fitting grid with the fewest stages (replicas have no bubble). If the request
/// does not fit, throws an error that lists the grids that do.
Grid fit(const LayoutLimits& limits, std::optional<int> pp, std::optional<int> dp,
         Folding folding = {});

/// Throws an error for the first violation unless each pipeline covers every unit once and in
/// order, the pipelines cover every microbatch once and never split a leaf, and limits.world ranks
/// have a stage: all ranks or, if `world` is larger, any of [0, world).
void validate(const Layout& layout, const LayoutLimits& limits, int world = 0);

}  // namespace concertina
