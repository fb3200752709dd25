// The lines of metrics.jsonl and events.jsonl as values, including decisions of a run that change
// neither its layout nor its frozen layers. Invariant: a key that is missing or has the wrong type
// becomes NaN or empty text.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/metrics.h"

namespace concertina {

/// A line of metrics.jsonl.
// clang-format off
struct MetricsPoint {
  MetricValue step = kNoValue;
#define NUMBER(type, name, ...) MetricValue name = kNoValue;
#define OPTIONAL(type, name, absent, ...) MetricValue name = absent;
#define TEXT(name, ...) std::string name{};
#include "io/step_metrics.inc"
  std::string time{};
};
// clang-format on

/// A "validation" line of events.jsonl.
struct ValidationPoint {
  MetricValue step = kNoValue, loss = kNoValue;
  std::int64_t tokens = 0, of_tokens = 0;   // 0: missing
  MetricValue seconds = kNoValue;           // duration of the evaluation
  std::string time{};                       // end of the evaluation
  std::string data{}, measure{};            // see measure_json()
  std::map<std::string, double> metrics{};  // other numbers in the line, such as "accuracy"
};

MetricValue number_in(const nlohmann::json& line, const char* key);
std::string text_in(const nlohmann::json& line, const char* key);

/// The complete lines of `path` that are objects; empty if the file does not exist.
std::vector<nlohmann::json> read_lines(const std::string& path);

/// Returns each line of a growing file once, as soon as it is complete.
class LineFollower {
 public:
  /// `path` may not exist yet.
  explicit LineFollower(std::string path) : path_(std::move(path)) {}
  /// Skips the existing content.
  void skip();
  /// The new lines that are objects.
  std::vector<nlohmann::json> look();

 private:
  std::string path_;
  std::uint64_t read_ = 0;  // bytes
};

/// The values of the lines that have a step.
std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines);
std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events);

}  // namespace concertina
