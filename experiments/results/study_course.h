// The steps of trials: their logs, and means over the trials of a group.
// Invariant: a mean is of steps that every one of its trials has, so that no trial that lacks some
// bends it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/record/training_clock.h"
#include "experiments/results/results.h"

namespace concertina {

/// The curve of a column of metrics.jsonl (loss, lr, grad_norm, tokens_per_s, step_ms, bubble), or
/// of validation_loss, validation_accuracy, ...: evaluations of as much text as the first one. Of a
/// step that was done twice, the last time counts. Throws Error{bad_input} for another column.
StepCurve curve_of(const RunLog& log, const std::string& column);

/// The training seconds until the first evaluation at which `column` is at least as good as
/// `target`: infinity if none is; nothing of a run without such evaluations.
std::optional<double> seconds_to(const RunLog& log, const std::string& column, double target);

/// Adds to trials that are done the column of each target, "METRIC=NUMBER", "METRIC=baseline" or
/// "METRIC=baseline-NUMBER" (or +), by seconds_to(), and returns their names. The baseline's target
/// is its last value on the metric's curve, the mean over the trials that have the values of
/// `baseline` ("COLUMN=VALUE"s) and those of the trial in all other axes: the same seed. Throws
/// Error{bad_input} for what is no target.
std::vector<std::string> add_times_to(StudyResults& results,
                                      const std::vector<std::string>& targets,
                                      const std::vector<std::string>& baseline);

/// The mean of curves with its interval, or their standard deviation, around it (of one curve the
/// curve itself, at both ends).
struct MeanCurve {
  std::vector<double> step, mean, low, high;
  bool operator==(const MeanCurve&) const = default;
};
/// `confidence`: of the interval; none: mean and standard deviation.
MeanCurve mean_of(const std::vector<StepCurve>& curves, std::optional<double> confidence);

}  // namespace concertina
