// The work and memory of the ranks of one pipeline, and the links between them: the input of a
// simulation. A group of tp devices is one rank; the shares of links that other replicas leave are
// in the rates. Gradients are reduced by a ring, weights gathered. Invariant: pure.
#pragma once

#include <vector>

#include "parallel/predict/unit_work.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// Seconds of one rank, once per step.
struct RankOnce {
  double reduction = 0;  // of gradients, after the last backward
  double gather = 0;     // of updated weights
  double update = 0;
};

/// Bytes that one stage keeps of a microbatch on one device: from F to W besides the stage's input,
/// and from I to W.
struct StageBytes {
  double saved = 0, grads = 0;
};

/// The parameters and units of a rank of a pipeline, on one device of its group.
struct RankShare {
  double parameters = 0;
  int units = 0;
  double scratch = 0;   // bytes that a backward pass takes while it runs
  double exchange = 0;  // seconds of the gradients of what other ranks of the pipeline hold too
};

/// The costs of one pipeline, as its simulation needs them.
struct PipelineWork {
  std::vector<StageCosts> stages;
  std::vector<StageBytes> bytes;  // by stage
  std::vector<RankShare> shares;  // by rank
  std::vector<RankOnce> once;     // by rank
  double boundary_bytes = 0;
  std::vector<LinkCosts> links;  // by rank: to the next one, the last one's to the first
  double again = 0, group = 0;   // seconds of one microbatch, all stages
};
PipelineWork pipeline_work(const PlanProblem& problem, const PlanCandidate& candidate,
                           WorkTable& table);

}  // namespace concertina
