// When a trial under way is ended for its figures: [stop] of a study.
// Invariant: pure in what it is told; it never ends a trial before [stop] after.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "experiments/study/study_spec.h"

namespace concertina {

class StopRule {
 public:
  /// `minimise`: whether smaller values are better, for patience.
  StopRule(const StopSection& stop, bool minimise) : stop_(stop), minimise_(minimise) {}

  /// Takes the metric's value after `step` steps. Returns why the trial should end; empty: it
  /// should go on.
  std::string see(std::int64_t step, double value);

 private:
  const StopSection& stop_;
  bool minimise_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  int no_better_ = 0;  // values in a row
};

/// Follows the log lines of a run while they are written, and gives them to a rule.
class RunFollower {
 public:
  /// `run`: its directory, which may not be there yet.
  RunFollower(const std::string& run, const StopSection& stop, bool minimise);
  /// Reads what is new. Returns why the trial should end; empty: it should go on.
  std::string look();

 private:
  std::string path_, metric_;
  bool validation_;
  StopRule rule_;
  std::int64_t read_ = 0;  // bytes
};

}  // namespace concertina
