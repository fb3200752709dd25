// The measurements of one rank in one training step.
// Invariant: data only; times are in seconds on the rank's local clock until corrected
// (parallel/comm/clock_sync.h), then on rank 0's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// When an action ran. `start` is after the wait for its input. The two actions of an overlapped
/// pair have the same start and end; `busy` is each one's share of that time.
struct ActionTime {
  double start = 0, end = 0;
  double busy = 0;  // end - start, except for overlapped actions
};

enum class WaitFor {
  receive,    // of an input or a gradient
  send,       // of a message whose buffer is needed again
  reduction,  // exchange and addition of gradients with the other holders
  ranks,      // exchange of losses and norms between all ranks at STEP
  weights,    // updated parts from the other holders
};

/// A period in which this rank did nothing but wait and copy arriving data.
struct WaitTime {
  WaitFor what = WaitFor::receive;
  Action transfer;  // for receive and send: the action that posted it
  double start = 0, end = 0;
};

/// When a transfer was first observed to be complete. Unless the rank was waiting for it, it may
/// have completed earlier.
struct Completion {
  Action transfer;
  double time = 0;
};

/// Memory in use.
struct MemoryUse {
  int activations = 0;             // (stage, microbatch) pairs between F and the end of B or W
  std::size_t saved_bytes = 0;     // saved activations, and data between I and W
  std::size_t boundary_bytes = 0;  // inputs, outputs and their gradients
};

struct MemorySample {
  double time = 0;
  MemoryUse use;
};

struct StepRecord {
  std::int64_t step = 0;
  double stage_seconds = 0;         // spent in calls to stages
  double start = 0, end = 0;        // excluding the data loading before it
  std::vector<ActionTime> actions;  // parallel to the rank's row of the plan
  std::vector<WaitTime> waits;      // ordered by time
  std::vector<Completion> completions;
  std::vector<MemorySample> memory;  // sampled at the start and end of each action, in recorded
                                     // steps only
};

/// Seconds spent waiting within [time.start, time.end].
double waited(const StepRecord& record, const ActionTime& time);

/// Means over the step that identify slow ranks and links; 0 if not applicable.
struct StepPace {
  std::array<double, 4> compute{};   // seconds per F, I, W, B, without waits
  std::array<double, 2> sent{};      // start of SEND_F, SEND_B, on the rank's clock
  std::array<double, 2> received{};  // when the data of RECV_F, RECV_B was first seen to be there
};
StepPace pace_of(const std::vector<Action>& row, const StepRecord& record);

/// Seconds spent on compute and STEP, without waits.
double busy_seconds(const std::vector<Action>& row, const StepRecord& record);

}  // namespace concertina
