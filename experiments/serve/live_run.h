// Runs and studies that may still go on, as JSON for a page that asks again and again.
// Invariants: it only reads; a line of a log is read once, however often somebody asks; a log that
// a resume has cut, or another launch has begun anew, is read anew.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/record/run_lines.h"

namespace concertina {

class LiveRun {
 public:
  explicit LiveRun(std::string directory);

  /// Where the run stands, and the points of its curves after `step`; all of them, and "reset",
  /// where it was cut before that.
  nlohmann::ordered_json state(double step);
  /// {"done", "steps", "loss", "left_s"}.
  nlohmann::ordered_json summary();

 private:
  void look();
  nlohmann::json points_after(double step) const;
  double seconds_left() const;

  const std::string directory_;
  LineFollower metrics_, events_;
  std::uintmax_t metrics_bytes_ = 0;
  double cuts_ = 0;  // how often a log was read anew
  std::vector<MetricsPoint> points_;
  std::vector<ValidationPoint> validations_;
  std::vector<nlohmann::json> notes_;  // the last events of other kinds
  double steps_ = 0;                   // run.steps
};

class LiveStudy {
 public:
  explicit LiveStudy(std::string directory) : directory_(std::move(directory)) {}

  /// All trials with their settings and how far they are.
  nlohmann::ordered_json state();
  /// The run of a trial with the end of its log. Throws Error{bad_input} where it has none.
  nlohmann::ordered_json run(int trial, double step);

 private:
  LiveRun& live(int trial, const std::string& directory);

  const std::string directory_;
  std::map<int, LiveRun> runs_;
};

}  // namespace concertina
