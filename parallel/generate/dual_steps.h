// The eight steps of DualPipe and DualPipeV for one rank (DeepSeek-AI 2024, public implementation).
// Invariant: each side's microbatches ascend for every kind of pass; every I has its W after it.
#pragma once

#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// A pass of one of the two flows that meet on a rank. Side 0 enters the pipeline on the rank's own
/// end (its stage is the nearer to the start), side 1 comes from the other end.
struct DualPass {
  Kind kind = Kind::F;
  int side = 0, microbatch = 0;
};

/// `from_end`: the rank's distance from its end, in [0, depth), the fold or middle being at depth.
/// `microbatches` of each side, at least 2 * depth.
std::vector<DualPass> dual_steps(int depth, int from_end, int microbatches);

}  // namespace concertina
