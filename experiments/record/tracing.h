// Records some steps of a run in trace.json. Invariant: nothing is written or sent within a step.
// Clocks are compared before the first and after the last recorded step of a window, and then the
// file is written immediately.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/record/run_trace.h"
#include "experiments/run/trainer.h"
#include "parallel/comm/clock_sync.h"

namespace concertina {

/// Steps [first, first + count).
struct TraceWindow {
  std::int64_t first = 0;
  int count = 0;
  std::int64_t end() const { return first + count; }
};

/// The steps to record in a launch that trains steps (done, steps]: `wanted` steps after the first
/// two, which warm up, or the last ones if there are fewer. Their number is reduced, but to at
/// least one, if the file would be large because steps have many `actions` over all ranks.
TraceWindow choose_window(std::int64_t done, std::int64_t steps, int wanted, std::size_t actions);

/// The windows requested by log.trace_at or log.trace_every, ascending: log.trace steps starting at
/// each requested step of the launch. A window that would start within another is omitted.
std::vector<TraceWindow> trace_windows(std::int64_t done, std::int64_t steps, const LogSection& log,
                                       std::size_t actions);

class Tracing {
 public:
  /// Writes to the run's `directory` on rank 0. All functions except last() are collective.
  Tracing(Trainer& trainer, const RunConfig& config, std::int64_t done, std::string directory);
  /// `step`: the first of the steps that are executed together.
  void before_step(std::int64_t step);
  void after_step(std::int64_t step);
  /// Call before the assignment changes: closes an open window after the previous step.
  void before_change();
  /// The last recording, on rank 0.
  const std::optional<RunTrace>& last() const { return last_; }

 private:
  bool records() const { return next_ < windows_.size(); }
  void write_window();

  Trainer& trainer_;
  const RunConfig& config_;
  std::string directory_;
  std::vector<TraceWindow> windows_;
  std::size_t next_ = 0;  // current or next window
  ClockOffset early_;
  std::optional<RunTrace> last_;
};

/// Gathers the steps (at least one) that `trainer` has executed and recorded from the working
/// ranks. Complete only on rank 0. Collective. `early`: this rank's measure_offset() before these
/// steps.
RunTrace gather_trace(Trainer& trainer, const RunConfig& config, const ClockOffset& early);

}  // namespace concertina
