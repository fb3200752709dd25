// Records what a rank does in a step: the times of every step, to compute the bubble, and complete
// records of requested steps.
// Invariants: nothing is allocated, written or sent in a step; overflow of a record is a bug. Until
// end_step() has settled the clock, all times are marks of the kernel clock (core/kernel_clock.h),
// except those of messages, which the host observes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel_clock.h"
#include "parallel/plan/step_record.h"

namespace concertina {

class TraceRecorder {
 public:
  /// Records steps that run `row` of `rank`, with at most `turns` turns of overlapped passes.
  /// `clock` must outlive the recorder.
  TraceRecorder(const std::vector<Action>& row, int rank, std::size_t turns, KernelClock& clock);

  /// Keeps the records of `count` steps: `first` and every `stride`-th step after it.
  void keep(std::int64_t first, int count, int stride = 1);
  /// Starts the record of step `step`.
  void begin_step(std::int64_t step);
  /// Waits for the kernels and sets the times of the record. Nothing is recorded outside of a step.
  void end_step();
  /// Sets the seconds that the last step spent in its stages.
  void worked(double stage_seconds) { current().stage_seconds = stage_seconds; }

  /// Whether the current step is kept, with samples of its memory.
  bool detailed() const { return kept_index_ >= 0; }

  /// Called around each action of the row; an overlapped action and the next one count as one.
  void begin(std::size_t action) {
    clock_.enter(names_[action].c_str());
    current().actions[action].start = clock_.mark();
  }
  void end(std::size_t action) {
    current().actions[action].end = clock_.mark();
    clock_.leave();
  }
  /// Called in an overlapped pair when the next unit belongs to this action.
  void turn(std::size_t action) { turns_.push_back({action, clock_.mark()}); }

  /// The `start` argument for waited(); 0 outside of a step.
  double mark() { return active_ ? clock_.mark() : 0; }
  /// Records a wait since the mark `start`.
  void waited(WaitFor what, const Action& transfer, double start);
  void completed(const Action& transfer);
  void memory(const MemoryUse& use) { current().memory.push_back({clock_.mark(), use}); }

  /// The last step.
  const StepRecord& last() const {
    return kept_index_ >= 0 ? kept_[static_cast<std::size_t>(kept_index_)] : scratch_;
  }
  /// The records of the steps of keep(), in order; they have no times until the steps have run.
  const std::vector<StepRecord>& kept() const { return kept_; }
  /// Discards the kept records and stops keeping.
  void release();

 private:
  struct Turn {
    std::size_t action = 0;
    double start = 0;
  };

  StepRecord& current() {
    return kept_index_ >= 0 ? kept_[static_cast<std::size_t>(kept_index_)] : scratch_;
  }
  StepRecord empty_record(bool detailed) const;
  void set_times(StepRecord& record);

  const std::vector<Action> row_;
  KernelClock& clock_;
  const std::size_t transfers_;
  std::vector<std::string> names_;  // names of the row's actions, for profilers
  std::vector<Turn> turns_;         // turns of the current step
  StepRecord scratch_;
  std::vector<StepRecord> kept_;
  std::int64_t first_ = 0, stride_ = 1;
  std::ptrdiff_t kept_index_ = -1;  // index of the current step; -1: recorded in scratch_
  bool active_ = false;
};

}  // namespace concertina
