// A run's metrics.jsonl, events.jsonl and result.json. Invariant: a reader sees only complete
// lines, and each step once even after a resume.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace concertina {

/// A logged number. NaN means absent: it is never displayed, plotted, averaged or selected as best.
using MetricValue = double;
inline constexpr MetricValue kNoValue = std::numeric_limits<MetricValue>::quiet_NaN();

/// A line of metrics.jsonl, for one step or for several that were executed together. Non-finite
/// numbers are written as null (JSON has no NaN).
// clang-format off
struct StepMetrics {
  std::int64_t step = 0;  // number of completed steps, from 1
#define NUMBER(type, name, ...) type name{};
#define OPTIONAL(type, name, absent, ...) type name = absent;
#define TEXT(name, ...) std::string name{};
#include "io/step_metrics.inc"
  std::string time{};  // end of the step, utc_text(); last key of the line
};
// clang-format on
nlohmann::ordered_json to_json(const StepMetrics& metrics);

/// A numeric metric. `tag` is its TensorBoard tag; empty if TensorBoard does not show it.
struct MetricNumber {
  std::string_view name, tag;
  double value;
};
std::vector<MetricNumber> metric_numbers(const StepMetrics& metrics);

/// A file with one JSON object per line, in the order they were written.
class JsonLines {
 public:
  /// Resumes the file after `last_step` (0: from the start): drops lines with a larger "step" and,
  /// with a warning, lines that are not JSON objects. Other lines remain unchanged.
  JsonLines(const std::string& path, std::int64_t last_step);

  /// Writes one line in one call, so a concurrent reader never sees a partial line, and none is
  /// left after an error. A line that could not be written is retried with the next one, up to a
  /// size limit.
  void write(const nlohmann::ordered_json& object);

 private:
  File file_;
  std::string waiting_{};
};

/// The kind of an event in events.jsonl.
// clang-format off
enum class EventKind : std::uint8_t {
  start, stop, stall, straggler, checkpoint, no_checkpoint, validation,
  freeze, layout, layout_outcome, refused, fault, cache,
};
// clang-format on
/// Returns the value of "event" in a line: "start", "no checkpoint", ...
std::string_view name_of(EventKind kind);
/// Returns a line of events.jsonl with the current time.
nlohmann::ordered_json event_line(std::int64_t step, EventKind kind,
                                  const nlohmann::ordered_json& facts);
/// Whether a line is an event of this kind.
bool is_event(const nlohmann::json& line, EventKind kind);

/// Atomically replaces `path` with the object, indented.
void write_result(const std::string& path, const nlohmann::ordered_json& result);

}  // namespace concertina
