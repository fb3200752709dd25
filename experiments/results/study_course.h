// The steps of trials: their logs, and means over the trials of a group.
// Invariant: a mean is of steps that every one of its trials has, so that no trial that lacks some
// bends it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/record/run_lines.h"
#include "experiments/results/results.h"

namespace concertina {

/// The log of a trial; of one without a run directory it is empty.
struct TrialCourse {
  std::vector<MetricsPoint> metrics;
  std::vector<ValidationPoint> validations;
};
TrialCourse read_course(const TrialRecord& trial);

/// A figure by step.
struct StepCurve {
  std::vector<double> step, value;
  bool operator==(const StepCurve&) const = default;
};
/// The curve of a column of metrics.jsonl (loss, lr, grad_norm, tokens_per_s, step_ms, bubble), or
/// of validation_loss: evaluations of as much text as the first one. Of a step that was done twice,
/// the last time counts. Throws Error{bad_input} for another column.
StepCurve curve_of(const TrialCourse& course, const std::string& column);

/// The mean of curves with its interval, or their standard deviation, around it (of one curve the
/// curve itself, at both ends).
struct MeanCurve {
  std::vector<double> step, mean, low, high;
  bool operator==(const MeanCurve&) const = default;
};
/// `confidence`: of the interval; none: mean and standard deviation.
MeanCurve mean_of(const std::vector<StepCurve>& curves, std::optional<double> confidence);

}  // namespace concertina
