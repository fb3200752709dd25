// Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing read. Source:
// "Trace Event Format", the Chromium project. A process has tracks and counters, a track has
// slices, which are nested or disjoint, and arrows connect slices. Invariants: each event is on a
// separate line, so that large files can be read piecewise; times are microseconds in the file and
// seconds in this interface.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace concertina {

/// Builds the text of a trace.
class ChromeTrace {
 public:
  /// `about` describes the trace as a whole ("otherData").
  explicit ChromeTrace(const nlohmann::ordered_json& about);

  /// Name a process or a track. Viewers show both in the order of their numbers.
  void process(int process, std::string_view name);
  void track(int process, int track, std::string_view name);

  /// `args` is a JSON object, or empty.
  void slice(int process, int track, std::string_view category, std::string_view name, double start,
             double end, std::string_view args = {});
  /// Starts an arrow at the slice that contains `time`. `id` and `name` identify the arrow.
  void arrow_start(int process, int track, std::uint64_t id, double time,
                   std::string_view name = "send");
  void arrow_end(int process, int track, std::uint64_t id, double time,
                 std::string_view name = "send");
  /// `values` is a JSON object of numbers; each member is a series.
  void counter(int process, std::string_view name, double time, std::string_view values);

  /// Returns the complete text of the file.
  std::string finish();

 private:
  void event(std::string_view text);

  std::string text_;
  bool first_ = true;
};

/// Reads a file written by ChromeTrace, passes each event to `see` and returns the `about` object.
/// Throws Error{bad_input} naming the line if the file is not in this format.
nlohmann::json read_chrome_trace(const std::string& path,
                                 const std::function<void(const nlohmann::json& event)>& see);

}  // namespace concertina
