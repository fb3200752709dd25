// The times of each unit's passes on this rank: two marks of the kernels' clock a pass, nothing
// else. Invariants: waiting and the work between units (transfers) is never a unit's, nor is
// anything outside of steps; nothing is allocated in a step.
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
  /// `units` of the model; `marks` that a step takes at most. `clock` outlives it.
  UnitClock(int units, std::size_t marks, KernelClock& clock);

  /// Where marks cost the device time, units are measured in some steps only: the first ones and
  /// one of kStride, or in all of them from now on.
  void measure_every_step() { every_step_ = true; }
  void begin_step();
  /// A unit is about to run.
  void start();
  void unit_done(int unit, Pass pass) override { lap(unit * kPasses + static_cast<int>(pass)); }
  /// The step has ended, and the clock has settled. Returns the seconds of all passes but packing,
  /// the additions of the reduction tree among them; 0 of a step that was not measured.
  double end_step();

  /// The means over typical steps, by unit of the model. A step in which a pass did not run counts
  /// as the one before it: frozen units need not run where what they make is known.
  std::vector<UnitSeconds> seconds() const;

  static constexpr std::int64_t kStride = 8;

 private:
  static constexpr int kStart = -1;
  struct Lap {
    int cell = kStart;  // of sums_: what has just ended
    double at = 0;
  };
  void lap(int cell);

  KernelClock& clock_;
  bool every_step_ = false, measuring_ = false;
  std::int64_t steps_begun_ = 0;
  std::vector<Lap> laps_;     // of the current step
  std::vector<double> sums_;  // [units x kPasses], seconds
  std::vector<int> counts_;
  std::vector<double> means_;  // of the last step that had them
  StepHistory steps_;
};

}  // namespace concertina
