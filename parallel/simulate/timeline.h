// When each action of a plan runs, with the derived idle time, memory and critical path.
// Invariant: plain values, pure functions.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"
#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Seconds since the start of the step.
struct Interval {
  double start = 0, end = 0;
};

/// Why an action had to wait after the previous one in its row.
enum class Wait {
  none,
  input,        // activations from the previous stage
  gradient,     // the gradient from the next stage
  send_buffer,  // an earlier message that has not been sent yet (kSendBuffers)
  reduction,    // gradients from other holders
  all_ranks,    // the other ranks in STEP
};

/// An action on the critical path, whose time is determined by the previous element.
struct PathStep {
  int rank = 0, position = 0;  // place in the plan
  Wait wait = Wait::none;
  double waited = 0;  // seconds that its rank was idle or receiving before it
};

struct Timeline {
  std::vector<std::vector<Interval>> rows;  // as Plan::rows; excludes waits
  double makespan = 0;
  std::vector<double> compute;        // seconds of F, I, W and B, by rank
  std::vector<double> busy;           // including the rank's own work in STEP
  std::vector<double> bubble;         // idle share of the makespan, by rank
  double mean_bubble = 0;             // over ranks that have actions
  std::vector<int> peak_activations;  // (stage, microbatch) pairs, by rank
  std::vector<std::size_t> peak_activation_bytes;
  std::vector<PathStep> critical_path;  // the whole step, from start to end
};

/// Idle time over ideal (busy) time of the rank where this is largest: within the whole step, and
/// from the start of its first compute action to the end of its last one, as in Schedule::bubble.
struct IdleOverIdeal {
  double step = 0, span = 0;
};
IdleOverIdeal idle_over_ideal(const Plan& plan, const Timeline& timeline);

/// By rank: from the start of its first compute action to the end of its last one.
std::vector<Interval> compute_spans(const Plan& plan, const Timeline& timeline);
/// The longest of these, in seconds.
double longest_span(const Plan& plan, const Timeline& timeline);

/// What determined the start of an action: an action of another rank, by number, or -1 for the
/// previous one in its row. Actions are numbered row by row.
struct Delay {
  int node = -1;
  Wait wait = Wait::none;
};

/// Sets everything except the rows. `stages` are those of the layout; `delays` is by action number;
/// `begins` has the number of the first action of each row, and the total.
void complete(Timeline& timeline, const Plan& plan, const std::vector<StageInfo>& stages,
              const Costs& costs, const std::vector<Delay>& delays, const std::vector<int>& begins);

}  // namespace concertina
