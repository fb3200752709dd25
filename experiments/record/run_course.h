// How a run went on: what changed between its steps (frozen layers, layout), what that cost, and
// how fast the steps were in between.
// Invariants: pure; what is not known is a NaN or an empty text, so that the lines of any version
// of the program make a course; segments follow each other and hold every step of the run once.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/report_figures.h"
#include "experiments/record/run_lines.h"

namespace concertina {

/// All that changed between two steps. Seconds, except where the name says something else.
struct RunChange {
  double step = 0;                       // after which it changed
  double frozen_before = 0, frozen = 0;  // layers
  std::string layout_before, layout;     // short forms
  std::string why;
  double cost = 0, predicted_cost = 0;  // of the change
  double moved_bytes = 0;               // between ranks
  double predicted_step_before = 0, predicted_step = 0;
  double measured_step = 0;  // some steps later, as the run compared it with the prediction
};

/// The steps between two changes, both ends included.
struct RunSegment {
  double first = 0, last = 0;
  std::int64_t steps = 0;
  double frozen = 0;   // layers
  double seconds = 0;  // of all its steps
  std::string layout;
  /// Seconds of a step. The mean is without the first step where there are others: it touches new
  /// memory, and in the first segment it begins a launch.
  double mean = 0, median = 0;
  double speed_up = 1;  // the mean of the first segment over this one's
};

struct RunCourse {
  int layers = 0;  // of the model; 0: not known
  std::vector<RunChange> changes;
  std::vector<RunSegment> segments;  // of a run without changes, one
  std::vector<RunNote> notes;        // what was decided besides
  std::string cache;                 // what the last launch read of the cache; empty: none

  /// Seconds that all changes took, of those that say it.
  double change_seconds() const;
  /// Seconds of all steps and changes, of which the run's first step counts as a mean one.
  double seconds() const;
  std::int64_t steps() const;
  /// The time of all steps at the first segment's mean, over seconds().
  double speed_up() const;
  /// The segment that begins with the step after `change`; null: no step came before the next one.
  const RunSegment* segment_after(const RunChange& change) const;
};

/// `layer_ends`: ModelSpec::layer_ends, empty where the model is not known. `events`, `launches`:
/// lines of events.jsonl and launches.jsonl. A change that no event tells of is found by the lines
/// of metrics.jsonl, such as a launch that resumes at another layout.
RunCourse course_of(const std::vector<MetricsPoint>& metrics,
                    const std::vector<nlohmann::json>& events,
                    const std::vector<nlohmann::json>& launches,
                    const std::vector<int>& layer_ends);

/// The course of a run directory; it is without layers where the config is of another version.
RunCourse course_of(const RunFiles& run);

/// "0 -> 4 of 12 layers frozen, pp2xdp2 -> pp1xdp4": what changed.
std::string change_text(const RunCourse& course, const RunChange& change);
/// A paragraph for a terminal, its lines ended; empty for a run without changes and notes.
std::string course_text(const RunCourse& course);
/// Keys: changes, segments, notes, speed_up (of the whole run). What is not known is null.
nlohmann::ordered_json to_json(const RunCourse& course);

}  // namespace concertina
