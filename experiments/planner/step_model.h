// What a step of a layout takes on a machine that is known by rates and links alone.
// A group of tp devices is one rank. A pass through a layer takes its products at the rate of large
// ones, what is bound by memory at the memory's rate, two all-reduces of the activations within the
// group, and a constant for launching it; so the rate depends on microbatch, width and tp. One
// replica is simulated, action by action (parallel/simulate): all others do the same at the same
// time, which is in the shares of links that they leave. Gradients are reduced by a ring, weights
// gathered.
// Invariant: pure.
#pragma once

#include <vector>

#include "experiments/config/config.h"
#include "experiments/costs/machine_model.h"
#include "experiments/planner/plan_candidate.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// What the search is for and on: all that does not change from layout to layout.
struct PlanProblem {
  RunConfig config;
  Software software;
  MachineModel machine;
  double memory = 0;  // bytes of one device
};

/// Seconds of one microbatch in a layer, or in the head, by part.
struct PassSeconds {
  double forward = 0, input = 0, weight = 0;
  double again = 0;  // of `input`: what is recomputed
  double group = 0;  // of all: all-reduces within the tensor-parallel group
  double total() const { return forward + input + weight; }
};
PassSeconds layer_seconds(const PlanProblem& problem, int tp, int samples, Recompute recompute);
PassSeconds head_seconds(const PlanProblem& problem, int tp, int samples);

/// The layers of a candidate's stages.
std::vector<int> layers_of(const PlanProblem& problem, const PlanCandidate& candidate);

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

/// No plan of this candidate can take less: the busiest rank's work, what must come before its
/// first action, and its part of the update.
double least_seconds(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work);
/// What it probably takes: the work of the busiest rank, and the idle time that the schedule
/// promises (Schedule::bubble).
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
  double bubble = 0;         // what is left of the step, mean of ranks
  std::vector<int> peaks{};  // microbatches of stages, by rank
};
/// `parts`: all figures (three simulations), else `seconds` and `peaks` alone (one).
StepPrediction simulate_step(const PlanProblem& problem, const PlanCandidate& candidate,
                             const PipelineWork& work, bool parts);

}  // namespace concertina
