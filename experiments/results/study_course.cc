#include "experiments/results/study_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/statistics.h"
#include "io/run_files.h"

namespace concertina {
namespace {

struct CourseColumn {
  std::string_view name;
  double MetricsPoint::*value;
};
constexpr std::string_view kHeldOut = "validation_";
constexpr std::array<CourseColumn, 6> kCourseColumns = {
    {{"loss", &MetricsPoint::loss},
     {"lr", &MetricsPoint::lr},
     {"grad_norm", &MetricsPoint::grad_norm},
     {"tokens_per_s", &MetricsPoint::tokens_per_s},
     {"step_ms", &MetricsPoint::step_ms},
     {"bubble", &MetricsPoint::bubble}}};

StepCurve as_curve(const std::map<double, double>& points) {
  StepCurve curve;
  for (const auto& [step, value] : points) {
    curve.step.push_back(step);
    curve.value.push_back(value);
  }
  return curve;
}

/// A trial that is done, and the runs' logs.
struct TargetTrial {
  TrialRecord* trial = nullptr;
  RunLog course;
};

/// The mean of the last values of those `trials` that `trial` is compared with; nothing if there is
/// none.
std::optional<double> baseline_target(const StudyResults& results, const TargetTrial& trial,
                                      const std::vector<TargetTrial>& trials,
                                      const std::vector<ColumnValue>& baseline,
                                      const std::string& metric) {
  std::vector<double> last;
  for (const TargetTrial& other : trials) {
    const bool is_baseline = std::ranges::all_of(baseline, [&](const ColumnValue& value) {
      return same_value(cell_of(*other.trial, value.column), value.value);
    });
    const bool is_pair = std::ranges::all_of(results.axes, [&](const std::string& axis) {
      return std::ranges::find(baseline, axis, &ColumnValue::column) != baseline.end() ||
             cell_of(*other.trial, axis) == cell_of(*trial.trial, axis);
    });
    if (!is_baseline || !is_pair) continue;
    const StepCurve curve = curve_of(other.course, metric);
    if (!curve.value.empty()) last.push_back(curve.value.back());
  }
  const SampleSummary summary = summarize(last, 0.95);
  return summary.n > 0 ? std::optional(summary.mean) : std::nullopt;
}

}  // namespace

StepCurve curve_of(const RunLog& course, const std::string& column) {
  std::map<double, double> points;
  if (column.starts_with(kHeldOut)) {
    const std::string figure = column.substr(kHeldOut.size());
    for (const ValidationPoint& point : course.validations)
      if (point.tokens != course.validations.front().tokens)
        continue;
      else if (const auto other = point.figures.find(figure); other != point.figures.end())
        points[point.step] = other->second;
      else if (figure == "loss")
        points[point.step] = point.loss;
    if (!points.empty() || course.validations.empty()) return as_curve(points);
  }
  const auto found = std::ranges::find(kCourseColumns, column, &CourseColumn::name);
  if (found == kCourseColumns.end()) {
    std::vector<std::string_view> words;
    for (const CourseColumn& known : kCourseColumns) words.push_back(known.name);
    words.emplace_back("validation_loss");
    throw_input(fmt::format("no run has '{}' by step", column), "--y",
                one_of(nearest_word(column, words), words));
  }
  for (const MetricsPoint& point : course.metrics) points[point.step] = point.*(found->value);
  return as_curve(points);
}

std::optional<double> seconds_to(const RunLog& course, const std::string& column, double target) {
  const StepCurve curve = curve_of(course, column), seconds = training_seconds(course);
  if (curve.step.empty() || seconds.step.empty()) return std::nullopt;
  const bool higher = name_of_figure(column).better == BetterEnd::higher;
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    if (higher ? curve.value[i] >= target : curve.value[i] <= target) {
      return seconds_at(seconds, curve.step[i]);
    }
  }
  return std::numeric_limits<double>::infinity();
}

std::vector<std::string> add_times_to(StudyResults& results,
                                      const std::vector<std::string>& targets,
                                      const std::vector<std::string>& baseline) {
  if (targets.empty()) return {};
  std::vector<ColumnValue> wanted;
  for (const std::string& text : baseline)
    wanted.push_back(column_value(results, text, "--baseline"));
  std::vector<TargetTrial> trials;
  for (TrialRecord& trial : results.trials)
    if (trial.state == TrialState::done) trials.push_back({&trial, read_log(trial.directory)});
  std::vector<std::string> columns;
  for (const std::string& target : targets) {
    const std::size_t equals = target.find('=');
    const std::string metric = target.substr(0, equals),
                      text = equals == target.npos ? "" : target.substr(equals + 1);
    const bool of_baseline = text.starts_with(kBaselineTarget);
    const std::string figure = of_baseline ? text.substr(std::strlen(kBaselineTarget)) : text;
    const Cell cell = cell_of_setting(figure.starts_with('+') ? figure.substr(1) : figure);
    const auto* number = std::get_if<double>(&cell);
    const bool is_sum = figure.empty() || figure.starts_with('+') || figure.starts_with('-');
    if (!metric.starts_with(kHeldOut) || (of_baseline ? !is_sum : figure.starts_with('+')) ||
        (number == nullptr && !(of_baseline && figure.empty())))
      throw_input(fmt::format("'{}' is no target of a held-out metric", target), "--to",
                  "--to validation_loss=2.5, --to validation_loss=baseline, or "
                  "--to validation_loss=baseline+0.01");
    if (of_baseline && wanted.empty())
      throw_input("there is no baseline whose last value is the target", "--to",
                  "--baseline COLUMN=VALUE");
    const std::string& column = columns.emplace_back(time_to(metric, text));
    const double more = number != nullptr ? *number : 0;
    for (TargetTrial& trial : trials) {
      const auto base = of_baseline ? baseline_target(results, trial, trials, wanted, metric) : 0;
      if (const auto seconds =
              base ? seconds_to(trial.course, metric, *base + more) : std::nullopt)
        trial.trial->figures[column] = *seconds;
    }
    require_column(results, column, "--to");
  }
  return columns;
}

MeanCurve mean_of(const std::vector<StepCurve>& curves, std::optional<double> confidence) {
  std::map<double, std::vector<double>> values;
  for (const StepCurve& curve : curves)
    for (std::size_t i = 0; i < curve.step.size(); ++i)
      values[curve.step[i]].push_back(curve.value[i]);
  MeanCurve result;
  for (const auto& [step, at] : values) {
    if (at.size() < curves.size()) continue;
    const SampleSummary summary = summarize(at, confidence.value_or(0.95));
    // One value that is not finite makes a gap: the others' mean would hide it.
    const double mean = summary.nan + summary.infinite > 0 ? std::nan("") : summary.mean;
    const double half = (confidence ? summary.half_width : summary.sd).value_or(0);
    result.step.push_back(step);
    result.mean.push_back(mean);
    result.low.push_back(mean - half);
    result.high.push_back(mean + half);
  }
  return result;
}

}  // namespace concertina
