// Simulates the assignments that a run could change to; the best ones come first.
// Invariant: pure, and bounded by a count of actions rather than a clock, so all ranks agree.
#pragma once

#include <vector>

#include "parallel/repartition/candidates.h"

namespace concertina {

/// Returns the number of plan actions that a decision may examine: about 5 s of work, and at most a
/// share of the possible gain of any layout over the current one (LayoutOptions::most_share), or 0
/// if that is below the threshold. A plan for 1,024 ranks and 2,048 microbatches contains half a
/// million actions.
std::int64_t actions_worth(const LayoutView& view);

struct LayoutChoices {
  std::vector<LayoutChoice> best;  // by the total time of the remaining steps and the change
  std::size_t left_out = 0;        // candidates for which `actions` did not suffice
};

/// Simulates every candidate with the run's measured costs, except those ruled out by their work
/// alone, and refines the partitions of the best ones. The current layout is not included. `step`
/// is its step time in seconds.
LayoutChoices best_choices(const LayoutView& view, double step, std::int64_t actions);

}  // namespace concertina
