// What a run does about a step of which the numbers are wrong: a loss or gradient that is not
// finite, weights or optimizer state that are not what the last update left.
// Invariants: all ranks do the same, and the same at every layout; a step is repaired once, and
// gone back from once: what comes again there is not by chance, and ends the run. Without a fault
// nothing here changes what is trained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/train/train_launch.h"

namespace concertina {

class StepGuard {
 public:
  /// What looking at the state takes at most of a step's time, in the mean, where verify.every
  /// leaves that to the run.
  static constexpr double kMostShare = 0.005;
  /// Steps in a row that verify.on_fault = "skip" leaves out at most.
  static constexpr int kMostSkipped = 10;

  /// `launch` is open and outlives this.
  explicit StepGuard(TrainLaunch& launch);

  /// Trains step `step`; nothing: the run is to go back (TrainLaunch::go_back()). A result with a
  /// fault: the step was passed over. Throws a failure where the run cannot go on. Collective.
  std::optional<StepResult> train(std::int64_t step, BatchSource& source);

  /// What the last look at the state of this rank took over `step_seconds`.
  double share(double step_seconds) const;
  /// `share`: the largest of all ranks. The same on all of them.
  void plan(double share);

 private:
  /// The same on all ranks.
  struct Report {
    StepFault::Kind kind = StepFault::Kind::none;
    std::string what{}, where{};
    std::vector<int> ranks{};  // of a wrong state
    bool repairable = false;
  };
  Report report(std::int64_t step, StepFault::Kind kind);
  Report report_state(std::int64_t step, const std::vector<nlohmann::json>& all) const;
  void tell(std::int64_t step, const Report& report, const std::string& action);
  [[noreturn]] void stop(std::int64_t step, const Report& report, bool repaired) const;

  TrainLaunch& launch_;
  Trainer& trainer_;
  const std::int64_t asked_;
  std::int64_t every_ = 1, left_ = 1;  // steps, until the next state that is recorded
  int skipped_ = 0;                    // in a row
};

}  // namespace concertina
