// The display of a training run: a bar on a terminal, otherwise a line every N steps. Invariant:
// the formatting is pure; only rank 0 creates a Progress.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "experiments/machine/output.h"

namespace concertina {

struct ProgressMetrics {
  std::int64_t step = 0, steps = 0;  // completed, and of the whole run
  double loss = 0, tokens_per_s = 0;
  double bubble = 0;        // idle share, averaged over ranks
  double seconds_left = 0;  // negative: unknown
  std::string elastic{};    // changes to the run (see Monitor); empty: none
  int batches = 1;          // steps that these values cover
};

/// "0:05", "12:34", "3:02:01", "5d 07h"; "?" if negative or not finite.
std::string format_duration(double seconds);
/// "950", "12.3k", "4.5M": three significant digits.
std::string format_rate(double per_second);
/// "step 20/200  loss 2.3456  12.3k tokens/s  bubble 12%  ETA 0:42"; after a change to the run "...
/// bubble 12%  pp2xdp1, 7 of 12 layers frozen  ETA 0:42".
std::string progress_line(const ProgressMetrics& metrics);
/// The progress line after a bar, truncated to `width` columns; ASCII only.
std::string progress_bar(const ProgressMetrics& metrics, int width);

class Progress {
 public:
  /// `every`: steps between lines if `stream` is not a terminal.
  Progress(std::FILE* stream, std::int64_t every);

  /// Called after each step. Redraws the bar at most 10 times a second.
  void update(const ProgressMetrics& metrics);
  /// Called during an evaluation, with the seconds so far. Prints a line every ten seconds if
  /// `stream` is not a terminal.
  void evaluation(std::int64_t done, std::int64_t of, double seconds);
  void clear() { line_.clear(); }
  /// Prints a line between step lines.
  void say(const std::string& line) { line_.say(line); }

 private:
  StatusLine line_;
  std::int64_t every_;
  double last_draw_ = 0;
};

/// Estimates the remaining seconds from an exponential moving average of step durations, so that
/// start-up and layout changes are soon forgotten.
class Eta {
 public:
  void add(double step_seconds);
  /// Negative before the first step.
  double seconds_left(double steps_left) const;

 private:
  double mean_ = -1;
};

}  // namespace concertina
