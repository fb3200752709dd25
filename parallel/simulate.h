// Predicts when each action of a plan runs, from costs a stage and a transfer.
// Invariant: pure and linear in the number of actions; the same plan and costs give the same
// timeline, whoever asks.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "parallel/schedule.h"

namespace concertina {

/// Seconds for one microbatch on one stage; B takes input + weight.
struct StageCosts {
  double forward = 1, input = 1, weight = 1;
  double reduce = 0;            // of the stage's gradients, once a step, overlapped
  std::size_t saved_bytes = 0;  // from F to B or W
};

struct Costs {
  std::vector<StageCosts> stages;  // by stage of the layout
  double latency = 0;              // seconds a transfer, from rank to rank
  double boundary_bytes = 0;       // of a transfer
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes a second, a channel
  double step = 0;                                             // seconds of STEP
};

/// F = I = W = 1, everything else 0.
Costs unit_costs(const Layout& layout);

/// Seconds since the start of the step.
struct Interval {
  double start = 0, end = 0;
};

struct Timeline {
  std::vector<std::vector<Interval>> rows;  // as Plan::rows
  double makespan = 0;
  std::vector<double> busy;    // seconds of compute and STEP, by rank
  std::vector<double> bubble;  // idle share of the makespan, by rank
  double mean_bubble = 0;
  std::vector<int> peak_activations;  // microbatches of stages, by rank
  std::vector<std::size_t> peak_activation_bytes;
};

/// A transfer starts when both ends are posted and its channel (ordered pair of ranks) is free; in
/// a plan without SEND and RECV it starts when its producer ends. REDUCE starts with the last
/// gradient of the stage's units on any rank; STEP, when every rank has come there. An overlapped F
/// and the action behind it have one interval, as long as both by themselves: on one set of cores
/// interleaving saves waits, not work. `plan` must pass check().
Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs);

}  // namespace concertina
