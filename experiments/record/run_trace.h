// The measurements of all ranks in a few steps, stored in trace.json and read by `report`.
// Invariants: all times are seconds on one clock from the start of the first step; reading a
// written trace gives the same values, with times accurate to the nanosecond.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/layout.h"
#include "parallel/plan/step_record.h"

namespace concertina {

/// The names of waits in the file, by WaitFor.
inline constexpr std::array<std::string_view, 5> kWaitNames{"receive", "send", "reduction", "ranks",
                                                            "weights"};

struct RunTrace {
  std::string run, schedule;
  Layout layout;
  Plan plan;
  std::vector<std::size_t> saved_bytes, grad_bytes;  // of a microbatch, by stage
  std::size_t boundary_bytes = 0;                    // of a message between stages
  double clock_error = 0;                            // seconds, the maximum over all ranks
  std::vector<std::vector<StepRecord>> steps;        // by step, then rank

  int ranks() const { return static_cast<int>(plan.rows.size()); }
};

/// The index of a stage within its pipeline, from 0.
int stage_in_pipeline(const Layout& layout, int stage);
/// The replica of each pipeline; pipelines on the same ranks form one replica.
std::vector<int> replicas_of(const Layout& layout);

/// "F 3 stage 1", "SEND_B 2 stage 1", "reduce stage 0", "optimizer", with the number of the stage
/// in its pipeline.
std::string title(const Action& action, const Layout& layout);

/// Chrome's trace-event format: a process per rank, with tracks for computing, sends and receives
/// (more if they overlap); arrows from sends to receives, and from the last REDUCE of a stage to
/// the STEPs that waited for it; counters for memory.
std::string to_chrome_trace(const RunTrace& trace);

/// Reads what to_chrome_trace() wrote. Throws Error{bad_input} for anything else.
RunTrace read_run_trace(const std::string& path);

}  // namespace concertina
