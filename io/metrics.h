// metrics.jsonl, events.jsonl and result.json of a run.
// Invariant: a reader sees whole lines, and after a resume each step once.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace concertina {

/// A number of a log. NaN: there is none. It is never shown as a number, drawn, averaged or best.
using Figure = double;
inline constexpr Figure kNoFigure = std::numeric_limits<Figure>::quiet_NaN();

/// A line of metrics.jsonl: of one step, or of several that were done at once. A number that is not
/// finite is written as null (JSON has no NaN).
// clang-format off
struct StepMetrics {
  std::int64_t step = 0;  // counted from 1: the steps done
#define NUMBER(type, name, ...) type name{};
#define OPTIONAL(type, name, absent, ...) type name = absent;
#define TEXT(name, ...) std::string name{};
#include "io/step_metrics.inc"
  std::string time{};  // when the step ended, utc_text(); the last key of the line
};
// clang-format on
nlohmann::ordered_json to_json(const StepMetrics& metrics);

/// One of its numbers. `tag`: in TensorBoard; empty: it is not written there.
struct MetricNumber {
  std::string_view name, tag;
  double value;
};
std::vector<MetricNumber> metric_numbers(const StepMetrics& metrics);

/// A file with one JSON object a line, in write order.
class JsonLines {
 public:
  /// Continues the file after a resume at `last_step` (0: from the start): drops lines whose "step"
  /// is above it, and with a warning lines that are no JSON objects; keeps the rest as it is.
  JsonLines(const std::string& path, std::int64_t last_step);

  /// One line in one write: whoever follows the file never sees half a line, nor does it stay after
  /// an error. A line that cannot be written is written before a later one, where there are not too
  /// many.
  void write(const nlohmann::ordered_json& object);

 private:
  File file_;
  std::string waiting_{};
};

/// What a line of events.jsonl tells.
// clang-format off
enum class EventKind : std::uint8_t {
  start, stop, stall, straggler, checkpoint, no_checkpoint, validation,
  freeze, layout, layout_outcome, refused, fault, cache,
};
// clang-format on
/// "start", "no checkpoint", ...: the value of "event" in a line.
std::string_view name_of(EventKind kind);
/// A line of events.jsonl, of now.
nlohmann::ordered_json event_line(std::int64_t step, EventKind kind,
                                  const nlohmann::ordered_json& facts);
/// Whether a line tells of an event of this kind.
bool is_event(const nlohmann::json& line, EventKind kind);

/// Replaces `path` by the object, indented, atomically.
void write_result(const std::string& path, const nlohmann::ordered_json& result);

}  // namespace concertina
