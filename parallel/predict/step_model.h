// The time of a layout's step: bounds and closed forms, and the simulation of one replica, action
// by action (parallel/simulate). All replicas do the same at the same time.
// Invariant: pure.
#pragma once

#include <vector>

#include "parallel/plan/plan_memory.h"
#include "parallel/predict/pipeline_work.h"

namespace concertina {

/// No plan of this candidate can take less: the busiest rank's work, what must come before its
/// first action, and its part of the update.
double least_seconds(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work);
/// Returns the probable seconds of a step: the work of the busiest rank, and the idle time that the
/// schedule promises (Schedule::bubble).
double likely_seconds(const PlanProblem& problem, const PlanCandidate& candidate,
                      const PipelineWork& work);

/// Actions of the simulation, with transfers: what a budget counts.
double simulated_actions(const PlanCandidate& candidate, int microbatches);

struct StepPrediction {
  double seconds = 0;
  double compute = 0;    // seconds, mean of ranks, without the following two
  double again = 0;      // recomputed
  double group = 0;      // all-reduces within tensor-parallel groups
  double transfer = 0;   // exposed: that the step would be shorter with free transfers
  double reduction = 0;  // exposed: with free reductions and gathers
  double update = 0;
  double bubble = 0;               // what is left of the step, mean of ranks
  std::vector<RowMemory> slots{};  // by rank
};
/// `parts`: all figures (three simulations), else `seconds` and `slots` alone (one).
StepPrediction simulate_step(const PlanProblem& problem, const PlanCandidate& candidate,
                             const PipelineWork& work, bool parts);

}  // namespace concertina
