// Predicts when each action of a plan runs.
// An event queue of one entry a rank, in order of time: ranks of a host share its link to the
// others, and who comes first there depends on time, which no longest path through a fixed graph
// can say. Invariant: pure; n log(ranks) in the number of actions; the same plan and costs give the
// same timeline, whoever asks.
#pragma once

#include <vector>

#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Seconds since the start of the step.
struct Interval {
  double start = 0, end = 0;
};

/// What an action had to wait for, behind the one before it in its row.
enum class Wait {
  none,
  input,        // activations from the previous stage
  gradient,     // the gradient from the next stage
  send_buffer,  // an earlier message that was not sent yet (kSendBuffers)
  reduction,    // gradients of other holders
  all_ranks,    // the others in STEP
};

/// An action on the critical path: it ran as late as it did because of the one before it here.
struct PathStep {
  int rank = 0, position = 0;  // in the plan
  Wait wait = Wait::none;
  double waited = 0;  // seconds that its rank stood idle, or received, before it
};

struct Timeline {
  std::vector<std::vector<Interval>> rows;  // as Plan::rows; waiting comes before `start`
  double makespan = 0;
  std::vector<double> busy;    // seconds of compute and STEP, by rank
  std::vector<double> bubble;  // idle share of the makespan, by rank
  double mean_bubble = 0;
  std::vector<int> peak_activations;  // microbatches of stages, by rank
  std::vector<std::size_t> peak_activation_bytes;
  std::vector<PathStep> critical_path;  // from the start of the step to its end
};

/// A message starts when both its ends are posted and its link is free; in a plan without SEND and
/// RECV it starts when its producer ends. What consumes it waits for it, then does the receiver's
/// part of the copy. An overlapped F and the action behind it have one interval, as long as both by
/// themselves: interleaving saves waits, not work. REDUCE waits for the stage's gradients from all
/// holders and adds them; STEP, for all ranks. `plan` must pass check().
Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs);

}  // namespace concertina
