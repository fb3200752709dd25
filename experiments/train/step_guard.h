// Handles a step with wrong numbers: a loss or gradient that is not finite, or weights or optimizer
// state that differ from the result of the last update. Invariants: all ranks do the same, in every
// layout; a step is repaired at most once, and makes the run go back at most once: a fault that
// recurs is not transient and ends the run. Without a fault, nothing here changes what is trained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/train/train_launch.h"

namespace concertina {

class StepGuard {
 public:
  /// The maximum mean share of the step time for checks of the state, if verify.every leaves the
  /// frequency to the run.
  static constexpr double kMostShare = 0.005;
  /// The maximum number of consecutive steps that verify.on_fault = "skip" skips.
  static constexpr int kMostSkipped = 10;

  /// `launch` is open and outlives this object.
  explicit StepGuard(TrainLaunch& launch);

  /// Trains step `step`. Returns nullopt if the run must go back (TrainLaunch::go_back()), and a
  /// result with a fault if the step was skipped. Throws if the run cannot continue. Collective.
  std::optional<StepResult> train(std::int64_t step, BatchSource& source);

  /// The time of this rank's last check of the state, divided by `step_seconds`.
  double share(double step_seconds) const;
  /// `share`: the maximum over all ranks, which must be the same on all of them.
  void plan(double share);

 private:
  /// The same on all ranks.
  struct Report {
    StepFault::Kind kind = StepFault::Kind::none;
    std::string what{}, where{};
    std::vector<int> ranks{};  // ranks with a wrong state
    bool repairable = false;
  };
  Report report(std::int64_t step, StepFault::Kind kind);
  Report report_state(std::int64_t step, const std::vector<nlohmann::json>& all) const;
  void tell(std::int64_t step, const Report& report, const std::string& action);
  [[noreturn]] void stop(std::int64_t step, const Report& report, bool repaired) const;

  TrainLaunch& launch_;
  Trainer& trainer_;
  const std::int64_t asked_;
  std::int64_t every_ = 1, left_ = 1;  // interval, and steps until the next recorded state
  int skipped_ = 0;                    // in a row
};

}  // namespace concertina
