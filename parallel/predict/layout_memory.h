// The memory of the fullest rank of a layout that may not run here, modelled: bytes per parameter
// of the software, and what its units keep times the slots that the order of actions needs.
// Invariant: pure. One device of each tensor-parallel group; all devices of a group are alike.
#pragma once

#include <vector>

#include "parallel/plan/plan_memory.h"
#include "parallel/predict/pipeline_work.h"

namespace concertina {

/// Bytes of one device, by purpose.
struct PlanMemory {
  double weights = 0;  // and gradients
  double optimizer = 0;
  double activations = 0;  // of all microbatches under way, and what one unit needs meanwhile
  double reserved = 0;
  double total() const { return weights + optimizer + activations + reserved; }
};

/// `rows`: plan_memory() of one pipeline's plan. The largest rank's.
PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<RowMemory>& rows);

/// The same before there is a plan. `peaks`: by rank, the most microbatches of stages between F and
/// W; how they are spread over the rank's stages is not known, so that this may be a little less.
PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<int>& peaks);

/// The most microbatches of stages that each rank keeps, as the schedule promises; 1F1B's by rank.
/// Empty: it promises nothing for these.
std::vector<int> promised_peaks(const PlanCandidate& candidate, int microbatches);

}  // namespace concertina
