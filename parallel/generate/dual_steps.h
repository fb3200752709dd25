// The eight steps of DualPipe and DualPipeV for one rank (DeepSeek-AI 2024, public implementation).
// Invariant: on each side, every kind of pass takes microbatches in order; every I precedes its W.
#pragma once

#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// A pass of one of the two flows that meet on a rank. Side 0 enters the pipeline at the rank's end
/// (its stage is closer to the start), side 1 comes from the other end.
struct DualPass {
  Kind kind = Kind::F;
  int side = 0, microbatch = 0;
};

/// `from_end` is the rank's distance from its end, in [0, depth), where depth is the fold or
/// middle. `microbatches` is the number per side, at least 2 * depth.
std::vector<DualPass> dual_steps(int depth, int from_end, int microbatches);

}  // namespace concertina
