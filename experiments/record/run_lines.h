// The lines of metrics.jsonl and events.jsonl as values, and the decisions of a run among them that
// change neither its layout nor its frozen layers.
// Invariant: a key that a line lacks, or that is of another type, is a NaN or an empty text.
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
  Figure step = kNoFigure;
#define NUMBER(type, name, ...) Figure name = kNoFigure;
#define OPTIONAL(type, name, absent, ...) Figure name = absent;
#define TEXT(name, ...) std::string name{};
#include "io/step_metrics.inc"
  std::string time{};
};
// clang-format on

/// A "validation" line of events.jsonl.
struct ValidationPoint {
  Figure step = kNoFigure, loss = kNoFigure;
  std::int64_t tokens = 0, of_tokens = 0;   // 0: the line does not say
  Figure seconds = kNoFigure;               // that the evaluation took
  std::string time{};                       // when it had ended
  std::string data{}, measure{};            // as of measure_json()
  std::map<std::string, double> figures{};  // the numbers of the line, as "accuracy"
};

Figure number_in(const nlohmann::json& line, const char* key);
std::string text_in(const nlohmann::json& line, const char* key);

/// The whole lines of `path` that are objects; none if there is no such file.
std::vector<nlohmann::json> read_lines(const std::string& path);

/// Sees each line of a file that is being written once, when it is whole.
class LineFollower {
 public:
  /// `path` may not be there yet.
  explicit LineFollower(std::string path) : path_(std::move(path)) {}
  /// Leaves out what is there now.
  void skip();
  /// The lines that are new, and objects.
  std::vector<nlohmann::json> look();

 private:
  std::string path_;
  std::uint64_t read_ = 0;  // bytes
};

/// The lines that have a step.
std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines);
std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events);

}  // namespace concertina
