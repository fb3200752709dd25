// What the ranks of one pipeline have to do, and the links between them: the input of a simulation.
// A group of tp devices is one rank; the shares of links that other replicas leave are in the
// rates. Gradients are reduced by a ring, weights gathered. Invariant: pure.
#pragma once

#include <vector>

#include "experiments/planner/pass_seconds.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// Seconds of one rank, once per step.
struct RankOnce {
  double reduction = 0;  // of gradients, after the last backward
  double gather = 0;     // of updated weights
  double update = 0;
};

/// What one pipeline's simulation needs.
struct PipelineWork {
  std::vector<StageCosts> stages;
  std::vector<RankOnce> once;  // by rank
  double boundary_bytes = 0;
  std::vector<LinkCosts> links;  // by rank: to the next one, the last one's to the first
  double again = 0, group = 0;   // of one microbatch, all stages
};
PipelineWork pipeline_work(const PlanProblem& problem, const PlanCandidate& candidate);

}  // namespace concertina
