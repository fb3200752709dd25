// What each unit's passes cost on this rank: two readings of the clock a pass, nothing else.
// Invariants: waiting and the work between units (transfers) is never a unit's; nothing is
// allocated in a step.
#pragma once

#include <vector>

#include "core/stage.h"
#include "core/step_history.h"

namespace concertina {

/// Seconds of a unit for one microbatch (pack: once a step); 0 where it was not seen.
struct UnitSeconds {
  double forward = 0, input = 0, weight = 0, pack = 0;
  bool operator==(const UnitSeconds&) const = default;
};

class UnitClock final : public UnitObserver {
 public:
  /// `units` of the model.
  explicit UnitClock(int units);

  /// A unit is about to run; returns the time.
  double start();
  void unit_done(int unit, Pass pass) override;
  /// Means of the step's passes, the additions of the reduction tree among them.
  void end_step();

  /// By unit of the model: means over typical steps.
  std::vector<UnitSeconds> seconds() const;

 private:
  double mark_ = 0;
  std::vector<double> sums_;  // [units x kPasses], seconds
  std::vector<int> counts_;
  StepHistory steps_;
};

}  // namespace concertina
