// Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
// Source: "Trace Event Format", the Chromium project. Processes have tracks; a track has slices,
// which nest or follow each other; arrows lead from slice to slice; counters are of a process.
// Invariants: one event a line, so that large files can be read piece by piece; times in the file
// are microseconds, here they are seconds.
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
  /// `about`: whatever describes the trace as a whole ("otherData").
  explicit ChromeTrace(const nlohmann::ordered_json& about);

  /// Names; processes and tracks appear in the order of their numbers.
  void process(int process, std::string_view name);
  void track(int process, int track, std::string_view name);

  /// `args`: a JSON object, or empty.
  void slice(int process, int track, std::string_view category, std::string_view name, double start,
             double end, std::string_view args = {});
  /// Begins an arrow at the slice around `time` on one track; `id` and `name` belong to one arrow.
  void arrow_start(int process, int track, std::uint64_t id, double time,
                   std::string_view name = "send");
  void arrow_end(int process, int track, std::uint64_t id, double time,
                 std::string_view name = "send");
  /// `values`: a JSON object of numbers, each one a series.
  void counter(int process, std::string_view name, double time, std::string_view values);

  /// The whole file.
  std::string finish();

 private:
  void event(std::string_view text);

  std::string text_;
  bool first_ = true;
};

/// Reads a file that ChromeTrace wrote: gives its `about` object, and `see` every event. Throws
/// Error{bad_input} with the line if it is not such a file.
nlohmann::json read_chrome_trace(const std::string& path,
                                 const std::function<void(const nlohmann::json& event)>& see);

}  // namespace concertina
