// The measurements of one rank in one training step.
// Invariant: data only; times are seconds, on the rank's own clock until they are corrected
// (parallel/comm/clock_sync.h), then on rank 0's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// When an action ran. Waiting for its input comes before `start`. The two of an overlapped pair
/// have one start and one end, and each its own share as `busy`.
struct ActionTime {
  double start = 0, end = 0;
  double busy = 0;  // end - start of any other action
};

enum class WaitFor {
  receive,    // the transfer that brings an input or a gradient
  send,       // a transfer whose buffer is needed again
  reduction,  // the gradients of the other holders, and their addition
  ranks,      // all ranks at STEP: losses and norms
  weights,    // the updated parts of the other holders
};

/// This rank did nothing else in the meantime, but for copying what arrived.
struct WaitTime {
  WaitFor what = WaitFor::receive;
  Action transfer;  // of receive and send: the action that posted it
  double start = 0, end = 0;
};

/// When a transfer was first seen to be over. It may have been over before, unless this rank was
/// waiting for it.
struct Completion {
  Action transfer;
  double time = 0;
};

/// Buffers in use.
struct MemoryUse {
  int activations = 0;             // microbatches of stages between F and the end of B or W
  std::size_t saved_bytes = 0;     // their activations, and what lies between I and W
  std::size_t boundary_bytes = 0;  // inputs, outputs and their gradients
};

struct MemorySample {
  double time = 0;
  MemoryUse use;
};

struct StepRecord {
  std::int64_t step = 0;
  double stage_seconds = 0;         // inside calls of stages
  double start = 0, end = 0;        // loading of the data comes first
  std::vector<ActionTime> actions;  // as the rank's row of the plan
  std::vector<WaitTime> waits;      // in order of time
  std::vector<Completion> completions;
  std::vector<MemorySample> memory;  // as each action starts and ends; recorded steps only
};

/// Seconds of waits within [time.start, time.end].
double waited(const StepRecord& record, const ActionTime& time);

/// What tells a slow rank or link from others: means over the step, 0 where it has none.
struct StepPace {
  std::array<double, 4> compute{};   // seconds of an F, I, W, B, without the waits inside them
  std::array<double, 2> sent{};      // when SEND_F, SEND_B began, on the rank's clock
  std::array<double, 2> received{};  // when what RECV_F, RECV_B posted was seen to be there
};
StepPace pace_of(const std::vector<Action>& row, const StepRecord& record);

/// Seconds of compute and STEP without the waits inside them.
double busy_seconds(const std::vector<Action>& row, const StepRecord& record);

}  // namespace concertina
