// What a microbatch takes in one layer, and in the head, on a machine that is known by rates alone.
// Products run at the rate of large ones, what is bound by memory at the memory's rate, two
// all-reduces of the activations within the tensor-parallel group at the rate within a host; and a
// constant for launching. So the rate depends on microbatch, width and tp.
// Invariant: pure.
#pragma once

#include <vector>

#include "experiments/config/config.h"
#include "experiments/costs/machine_model.h"
#include "experiments/planner/plan_candidate.h"

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

}  // namespace concertina
