// A run's log as values, and a clock for its training time. Invariant: the clock counts the
// training time of all launches, without evaluations.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/run_lines.h"

namespace concertina {

struct RunLog {
  std::vector<MetricsPoint> metrics;
  std::vector<ValidationPoint> validations;
  std::vector<std::string> launches{};  // start times
};
/// The start times of launches, from the lines of launches.jsonl.
std::vector<std::string> starts_of(const std::vector<nlohmann::json>& launches);
/// Reads the log of a run directory; returns an empty log for an empty name.
RunLog read_log(const std::string& directory);

/// A metric by step.
struct StepCurve {
  std::vector<double> step, value;
  bool operator==(const StepCurve&) const = default;
};

/// The training time in seconds up to the end of each step: wall time, including decisions, layout
/// changes and checkpoints, but not evaluations. The clock starts after the first step, which
/// creates kernels, and stops between launches and during the first step of each. For a repeated
/// step, the last time counts. Empty if the log lacks the time of a step or evaluation.
StepCurve training_seconds(const RunLog& log);
}  // namespace concertina
