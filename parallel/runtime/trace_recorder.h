// Records what a rank does in a step: every step's times, for the bubble, and all of the steps that
// were asked for.
// Invariants: nothing is allocated, written or sent in a step; a record that is full is our bug.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "parallel/plan/step_record.h"

namespace concertina {

class TraceRecorder {
 public:
  /// For steps that run `row`.
  explicit TraceRecorder(const std::vector<Action>& row);

  /// Keeps the records of steps [first, first + count).
  void keep(std::int64_t first, int count);
  /// Until begin_step() of the next step, what is recorded belongs to this one.
  void begin_step(std::int64_t step);
  /// Outside of a step, waits and completions are not recorded.
  void end_step() {
    current().end = now();
    active_ = false;
  }

  /// Whether the current step is kept: then memory is asked for as well.
  bool detailed() const { return kept_index_ >= 0; }
  ActionTime& time(std::size_t action) { return current().actions[action]; }
  void worked(double seconds) { current().stage_seconds += seconds; }
  void waited(WaitFor what, const Action& transfer, double start);
  void completed(const Action& transfer);
  void memory(const MemoryUse& use) { current().memory.push_back({now(), use}); }

  /// The step under way, or the last one.
  const StepRecord& last() const {
    return kept_index_ >= 0 ? kept_[static_cast<std::size_t>(kept_index_)] : scratch_;
  }
  /// Those of keep(), in order; without times until they have run.
  const std::vector<StepRecord>& kept() const { return kept_; }
  /// Forgets them and keeps nothing more.
  void release();

 private:
  StepRecord& current() {
    return kept_index_ >= 0 ? kept_[static_cast<std::size_t>(kept_index_)] : scratch_;
  }
  StepRecord empty_record(bool detailed) const;

  const std::size_t actions_, transfers_;
  StepRecord scratch_;
  std::vector<StepRecord> kept_;
  std::int64_t first_ = 0;
  std::ptrdiff_t kept_index_ = -1;  // of the current step; -1: it goes to scratch_
  bool active_ = false;
};

}  // namespace concertina
