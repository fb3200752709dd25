// The log of a run as values, and the clock of its training.
// Invariant: the clock counts what training takes and no evaluation, whatever the launches.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/run_lines.h"

namespace concertina {

struct RunLog {
  std::vector<MetricsPoint> metrics;
  std::vector<ValidationPoint> validations;
  std::vector<std::string> launches{};  // when each began
};
/// The starts of the launches that lines of launches.jsonl are of.
std::vector<std::string> starts_of(const std::vector<nlohmann::json>& launches);
/// What a run directory has of it; of an empty name nothing.
RunLog read_log(const std::string& directory);

/// A figure by step.
struct StepCurve {
  std::vector<double> step, value;
  bool operator==(const StepCurve&) const = default;
};

/// The training seconds up to the end of each step: wall time, with decisions, changes of the
/// layout and checkpoints, without evaluations. The clock starts at the end of the first step, in
/// which kernels are made; it stands still between launches and for the first step of each. Of a
/// step that was done twice, the last time counts. Empty of a run whose log lacks a time, or that
/// of an evaluation.
StepCurve training_seconds(const RunLog& log);
}  // namespace concertina
