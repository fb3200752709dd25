// The assignments that a run could go on with, simulated: the best of them first.
// Invariant: pure, and bounded by a count of actions, no clock: all ranks find the same.
#pragma once

#include <vector>

#include "parallel/repartition/candidates.h"

namespace concertina {

/// Actions of all plans that a decision may look at: those of 5 s, about, and of no more than a
/// share of what any layout could gain over this one (LayoutOptions::most_share), 0 where that is
/// less than what counts. A plan of 1,024 ranks and 2,048 microbatches has half a million.
std::int64_t actions_worth(const LayoutView& view);

struct LayoutChoices {
  std::vector<LayoutChoice> best;  // by what the steps that are left and the change take
  std::size_t left_out = 0;        // candidates for which `actions` did not suffice
};

/// Every candidate is simulated with the run's own costs, but for those that their work alone rules
/// out, the best ones with their cuts moved as long as that helps. What the run does already is
/// none of them. `step`: seconds of that.
LayoutChoices best_choices(const LayoutView& view, double step, std::int64_t actions);

}  // namespace concertina
