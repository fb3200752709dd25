// Records some steps of a run into trace.json.
// Invariant: nothing is written or sent within a step; the clocks are compared before the first
// recorded step and behind the last, and the file is there from then on, whatever happens next.
#pragma once

#include <string>

#include "experiments/report/run_trace.h"
#include "experiments/run/rank_engine.h"
#include "parallel/comm/clock_sync.h"

namespace concertina {

/// Steps [first, first + count).
struct TraceWindow {
  std::int64_t first = 0;
  int count = 0;
};

/// The steps to record of a launch that trains (done, steps]: `wanted` behind its first two, which
/// warm up, or its last ones where it has fewer; fewer than wanted where a step has so many
/// `actions` on all ranks that the file would be large, but at least one.
TraceWindow choose_window(std::int64_t done, std::int64_t steps, int wanted, std::size_t actions);

class Tracing {
 public:
  /// Writes to `path` on rank 0. All functions are collective.
  Tracing(RankEngine& engine, const RunConfig& config, std::int64_t done, std::string path);
  void before_step(std::int64_t step);
  void after_step(std::int64_t step);

 private:
  RankEngine& engine_;
  const RunConfig& config_;
  std::string path_;
  TraceWindow window_;
  ClockOffset early_;
};

/// Of the steps that `engine` kept, at least one; complete on rank 0 only. Collective. `early`:
/// this rank's measure_offset() before them.
RunTrace gather_trace(RankEngine& engine, const RunConfig& config, const ClockOffset& early);

}  // namespace concertina
