#include "experiments/results/study_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/results/statistics.h"
#include "io/run_files.h"

namespace concertina {
namespace {

struct CourseColumn {
  std::string_view name;
  double MetricsPoint::*value;
};
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

}  // namespace

TrialCourse read_course(const TrialRecord& trial) {
  if (trial.directory.empty()) return {};
  return {metrics_of(read_lines(run_file(trial.directory, kMetricsFile))),
          validations_of(read_lines(run_file(trial.directory, kEventsFile)))};
}

StepCurve curve_of(const TrialCourse& course, const std::string& column) {
  std::map<double, double> points;
  if (column == "validation_loss") {
    for (const ValidationPoint& point : course.validations)
      if (point.tokens == course.validations.front().tokens) points[point.step] = point.loss;
    return as_curve(points);
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
