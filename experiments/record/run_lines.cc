#include "experiments/record/run_lines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/log_lines.h"

namespace concertina {
MetricValue number_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : std::nan("");
}

std::string text_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_string() ? at->get<std::string>() : "";
}

std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::uint64_t from = 0;
  each_log_object(path, from, [&](nlohmann::json line, bool) { lines.push_back(std::move(line)); });
  return lines;
}

void LineFollower::skip() {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  read_ = error ? 0 : size;
}

std::vector<nlohmann::json> LineFollower::look() {
  std::vector<nlohmann::json> lines;
  each_log_object(path_, read_, [&](nlohmann::json line, bool whole) {
    if (whole) lines.push_back(std::move(line));
  });
  return lines;
}

std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines) {
  std::vector<MetricsPoint> points;
  for (const nlohmann::json& line : lines) {
    MetricsPoint point{.step = number_in(line, "step"), .time = text_in(line, "time")};
    if (!std::isfinite(point.step)) continue;
#define NUMBER(type, name, ...) point.name = number_in(line, #name);
#define OPTIONAL(type, name, ...) \
  if (line.contains(#name)) point.name = number_in(line, #name);
#define TEXT(name, ...) point.name = text_in(line, #name);
#include "io/step_metrics.inc"
    if (!(point.batches >= 1 && point.batches < 1e6)) point.batches = 1;
    // A measured rate is positive; 0 in a log means that it was not measured.
    for (MetricValue* const rate : {&point.tokens_per_s, &point.step_ms})
      if (!(*rate > 0)) *rate = kNoValue;
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events) {
  std::vector<ValidationPoint> points;
  const auto count = [](const nlohmann::json& json, const char* key) {
    const double value = number_in(json, key);
    return value >= 0 && value < 1e18 ? static_cast<std::int64_t>(value) : 0;
  };
  for (const nlohmann::json& line : events) {
    if (!is_event(line, EventKind::validation) || !std::isfinite(number_in(line, "step"))) continue;
    points.push_back({.step = number_in(line, "step"),
                      .loss = number_in(line, "loss"),
                      .tokens = count(line, "tokens"),
                      .of_tokens = count(line, "of_tokens"),
                      .seconds = number_in(line, "seconds"),
                      .time = text_in(line, "time"),
                      .data = text_in(line, "data"),
                      .measure = text_in(line, "measure")});
    for (const auto& [key, value] : line.items())
      if (value.is_number()) points.back().metrics[key] = value.get<double>();
  }
  return points;
}

}  // namespace concertina
