#include "experiments/record/training_clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "io/run_files.h"

namespace concertina {
namespace {

/// Seconds between two times in the format of utc_text(): "2026-01-31T23:59:59.123Z".
double seconds_between(const std::string& from, const std::string& to) {
  const auto seconds = [](const std::string& text) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0;
    double second = 0;
    if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%lfZ", &year, &month, &day, &hour, &minute,
                    &second) != 6)
      return std::nan("");
    const std::chrono::sys_days date{std::chrono::year(year) / month / day};
    return 86400.0 * static_cast<double>(date.time_since_epoch().count()) + 3600 * hour +
           60 * minute + second;
  };
  return seconds(to) - seconds(from);
}

}  // namespace

std::vector<std::string> starts_of(const std::vector<nlohmann::json>& launches) {
  std::vector<std::string> starts;
  for (const nlohmann::json& launch : launches) starts.push_back(text_in(launch, "start"));
  return starts;
}

RunLog read_log(const std::string& directory) {
  if (directory.empty()) return {};
  return {metrics_of(read_lines(run_file(directory, kMetricsFile))),
          validations_of(read_lines(run_file(directory, kEventsFile))),
          starts_of(read_lines(run_file(directory, kLaunchesFile)))};
}

StepCurve training_seconds(const RunLog& log) {
  std::map<double, double> seconds;
  const MetricsPoint* before = nullptr;
  double elapsed = 0;
  for (const MetricsPoint& point : log.metrics) {
    if (point.time.empty()) return {};
    if (before != nullptr && point.step <= before->step) {  // repeated by another launch
      seconds.erase(seconds.lower_bound(point.step), seconds.end());
      elapsed = seconds.empty() ? 0 : seconds.rbegin()->second;
    }
    const auto between = [&](const std::string& time) {
      return time > before->time && time <= point.time;
    };
    if (before != nullptr && std::ranges::none_of(log.launches, between)) {
      elapsed += seconds_between(before->time, point.time);
      for (const ValidationPoint& evaluation : log.validations)
        if (between(evaluation.time)) elapsed -= evaluation.seconds;
      if (std::isnan(elapsed)) return {};
    }
    seconds[point.step] = elapsed;
    before = &point;
  }
  StepCurve clock;
  for (const auto& [step, value] : seconds) {
    clock.step.push_back(step);
    clock.value.push_back(value);
  }
  return clock;
}

}  // namespace concertina
