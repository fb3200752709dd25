#include "experiments/record/run_lines.h"

#include <cmath>
#include <fstream>

namespace concertina {
namespace {

/// Steps that a line of metrics.jsonl is of.
double batches_in(const nlohmann::json& line) {
  const double batches = number_in(line, "batches");
  return batches >= 1 && batches < 1e6 ? batches : 1;
}

}  // namespace

double number_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : std::nan("");
}

std::string text_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_string() ? at->get<std::string>() : "";
}

std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);)
    // A line that is being written is no object.
    if (nlohmann::json json = nlohmann::json::parse(line, nullptr, false); json.is_object())
      lines.push_back(std::move(json));
  return lines;
}

std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines) {
  std::vector<MetricsPoint> points;
  for (const nlohmann::json& line : lines)
    points.push_back({.batches = batches_in(line),
                      .step = number_in(line, "step"),
                      .loss = number_in(line, "loss"),
                      .tokens_per_s = number_in(line, "tokens_per_s"),
                      .step_ms = number_in(line, "step_ms"),
                      .bubble = number_in(line, "bubble"),
                      .lr = number_in(line, "lr"),
                      .grad_norm = number_in(line, "grad_norm"),
                      .time = text_in(line, "time"),
                      .layout = text_in(line, "layout"),
                      .frozen_units = number_in(line, "frozen_units")});
  std::erase_if(points, [](const MetricsPoint& point) { return !std::isfinite(point.step); });
  return points;
}

std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events) {
  std::vector<ValidationPoint> points;
  const auto count = [](const nlohmann::json& json, const char* key) {
    const double value = number_in(json, key);
    return value >= 0 && value < 1e18 ? static_cast<std::int64_t>(value) : 0;
  };
  for (const nlohmann::json& line : events)
    if (text_in(line, "event") == "validation")
      points.push_back({number_in(line, "step"), number_in(line, "loss"), count(line, "tokens"),
                        count(line, "of_tokens")});
  return points;
}

}  // namespace concertina
