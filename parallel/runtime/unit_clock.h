// Durations of each unit's passes on this rank, from two marks of the kernel clock per pass.
// Invariants: excludes waits, the work between units (transfers) and everything outside of steps;
// nothing is allocated in a step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel_clock.h"
#include "core/model/model_spec.h"
#include "core/model/stage.h"
#include "core/step_history.h"

namespace concertina {

class UnitClock final : public UnitObserver {
 public:
  /// For `units` units and at most `marks` marks per step. `clock` must outlive the object.
  UnitClock(int units, std::size_t marks, KernelClock& clock);

  /// Measures every step from now on. By default, where marks cost device time, only the first
  /// steps and then one in kStride are measured.
  void measure_every_step() { every_step_ = true; }
  void begin_step();
  /// Called when a unit is about to run.
  void start();
  void unit_done(int unit, Pass pass) override { lap(unit * kPasses + static_cast<int>(pass)); }
  /// Ends the step after the clock has settled. Returns the seconds of all passes except packing,
  /// including the additions of the reduction tree, or 0 if the step was not measured.
  double end_step();

  /// Means over typical steps, by unit of the model. A pass that did not run in a step, because the
  /// outputs of frozen units were known, counts with its previous duration.
  std::vector<UnitSeconds> seconds() const;

  static constexpr std::int64_t kStride = 8;

 private:
  static constexpr int kStart = -1;
  struct Lap {
    int cell = kStart;  // index in sums_ of the pass that has just ended
    double at = 0;
  };
  void lap(int cell);

  KernelClock& clock_;
  bool every_step_ = false, measuring_ = false;
  std::int64_t steps_begun_ = 0;
  std::vector<Lap> laps_;     // laps of the current step
  std::vector<double> sums_;  // [units x kPasses], seconds
  std::vector<int> counts_;
  std::vector<double> means_;  // means of the last measured step
  StepHistory steps_;
};

}  // namespace concertina
