// The display of a training run while it goes on: a bar on a terminal, else a line every
// N steps. Invariant: the formatting is pure; only rank 0 makes a Progress.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "experiments/machine/output.h"

namespace concertina {

struct ProgressFigures {
  std::int64_t step = 0, steps = 0;  // done, of the whole run
  double loss = 0, tokens_per_s = 0;
  double bubble = 0;        // idle share, mean over ranks
  double seconds_left = 0;  // negative: not known yet
  std::string elastic{};    // what has changed in the run, see Monitor; empty: nothing
  int batches = 1;          // steps that these figures are of
};

/// "0:05", "12:34", "3:02:01", "5d 07h"; "?" if negative or not finite.
std::string format_duration(double seconds);
/// "950", "12.3k", "4.5M": three significant digits.
std::string format_rate(double per_second);
/// "step 20/200  loss 2.3456  12.3k tokens/s  bubble 12%  ETA 0:42"; in a run that has changed
/// "...  bubble 12%  pp2xdp1, 7 of 12 layers frozen  ETA 0:42".
std::string progress_line(const ProgressFigures& figures);
/// The same after a bar, cut to at most `width` columns; ASCII only.
std::string progress_bar(const ProgressFigures& figures, int width);

class Progress {
 public:
  /// `every`: steps between lines where `stream` is no terminal.
  Progress(std::FILE* stream, std::int64_t every);

  /// Is called after each step. Redraws the bar at most 10 times a second.
  void update(const ProgressFigures& figures);
  /// Is called while an evaluation goes on: `seconds` so far. Where `stream` is no terminal, a line
  /// each ten seconds.
  void evaluation(std::int64_t done, std::int64_t of, double seconds);
  void clear() { line_.clear(); }
  /// Writes a line between those of steps.
  void say(const std::string& line) { line_.say(line); }

 private:
  StatusLine line_;
  std::int64_t every_;
  double last_draw_ = 0;
};

/// Seconds left from the time that the latest steps took: an exponential mean, so that start-up and
/// a change of layout are soon forgotten.
class Eta {
 public:
  void add(double step_seconds);
  /// Negative before the first step.
  double seconds_left(double steps_left) const;

 private:
  double mean_ = -1;
};

}  // namespace concertina
