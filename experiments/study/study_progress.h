// What a person sees of a study while it runs: a line for each trial that ends, and on a terminal a
// line at the bottom with what is left.
// Invariant: what is shown never changes what runs; a stream that takes no more never ends a study.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "experiments/results/results.h"

namespace concertina {

class StudyProgress {
 public:
  /// `metric`: a figure to show of each trial; empty: validation_loss or loss.
  StudyProgress(std::FILE* stream, std::string metric);
  ~StudyProgress() { clear(); }
  StudyProgress(const StudyProgress&) = delete;
  StudyProgress& operator=(const StudyProgress&) = delete;

  void started(const TrialRecord& trial);
  /// `seconds`: of its launch.
  void ended(const TrialRecord& trial, double seconds);
  /// Redraws the bottom line, at most twice a second. `left`: tasks that have not started.
  void update(int running, std::optional<int> left);
  void clear();
  int count() const { return ended_; }

 private:
  double seconds_left(int running, std::optional<int> left) const;

  std::FILE* stream_;
  std::string metric_;
  bool terminal_, drawn_ = false;
  double last_draw_ = 0, began_;
  int ended_ = 0;  // in this launch
};

}  // namespace concertina
