// Records some steps of a run into trace.json.
// Invariant: nothing is written or sent within a step; the clocks are compared before the first
// recorded step of a window and after its last, and the file is there from then on, whatever
// happens next.
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

/// The steps to record of a launch that trains (done, steps]: `wanted` after its first two, which
/// warm up, or its last ones where it has fewer; fewer than wanted where a step has so many
/// `actions` on all ranks that the file would be large, but at least one.
TraceWindow choose_window(std::int64_t done, std::int64_t steps, int wanted, std::size_t actions);

/// The same where log.trace_at or log.trace_every ask for other steps: windows of log.trace steps
/// from each of these steps on that lies in the launch, ascending; one that begins within another
/// is part of it.
std::vector<TraceWindow> trace_windows(std::int64_t done, std::int64_t steps, const LogSection& log,
                                       std::size_t actions);

class Tracing {
 public:
  /// Writes into the run's `directory` on rank 0. All functions but last() are collective.
  Tracing(Trainer& trainer, const RunConfig& config, std::int64_t done, std::string directory);
  /// `step`: the first of those that are done at once.
  void before_step(std::int64_t step);
  void after_step(std::int64_t step);
  /// The assignment is about to change: a window that is open ends with the step before.
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
  std::size_t next_ = 0;  // the current window, or the next one
  ClockOffset early_;
  std::optional<RunTrace> last_;
};

/// The steps that `trainer` kept and that were reached, at least one, on the ranks that work;
/// complete on rank 0 only. Collective. `early`: this rank's measure_offset() before them.
RunTrace gather_trace(Trainer& trainer, const RunConfig& config, const ClockOffset& early);

}  // namespace concertina
