// A plan is a value: one row of actions per rank.
// Invariant: no MPI, no threads, no clock here; the executor knows no schedule by name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/layout.h"

namespace concertina {

/// F forward, I input gradient, W weight gradient, B = I + W. SEND_F/RECV_F activations to the next
/// / from the previous stage, SEND_B/RECV_B gradients to the previous / from the next.
/// A RECV posts the receive (the action that consumes it waits); a SEND starts the transfer.
/// REDUCE may be anywhere after the stage's last W and never waits: the reduction of a bucket
/// starts automatically with its last gradient, and REDUCE only drives its progress. STEP, the last
/// action of each rank, waits for all reductions, clips, runs the optimizer and gathers weights.
enum class Kind { F, I, W, B, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE, STEP };

struct Action {
  Kind kind = Kind::F;
  int stage = 0;        // numbered as in Layout
  int microbatch = -1;  // within the step; -1 for REDUCE and STEP
  /// Whether an F runs interleaved with the next action of its row, a B or I of another microbatch:
  /// both start once both can, and end together.
  bool overlapped = false;
  bool operator==(const Action&) const = default;
};

/// Maximum number of actions in a plan. Checking and simulating it needs kActionBytes per action.
inline constexpr std::size_t kMostActions = std::size_t{1} << 27;
inline constexpr std::size_t kActionBytes = 128;

/// rows[rank] in order of execution.
struct Plan {
  std::vector<std::vector<Action>> rows;
  bool operator==(const Plan&) const = default;
};

/// Returns the name, such as "SEND_B". It is null-terminated, so data() is a C string.
std::string_view name_of(Kind kind);

/// Returns text such as "0F0", "1SEND_B3", "0REDUCE_GRAD" or "STEP".
std::string to_text(const Action& action);

/// Returns one line per rank with comma-separated actions; an overlapped F shares a cell with the
/// next action. This is PyTorch's pipelining CSV (schedule_text.cc) with STEP added.
std::string to_text(const Plan& plan);

/// The inverse of to_text(). Skips other allowed content of schedule files. `where` names the
/// source in errors, which give row and column (from 1) and the token.
Plan parse_plan(std::string_view text, const std::string& where);

bool is_compute(Kind kind);             // F, I, W, B
bool is_transfer(Kind kind);            // SEND_*, RECV_*
bool makes_input_gradient(Kind kind);   // I, B
bool makes_weight_gradient(Kind kind);  // W, B
bool is_send(Kind kind);
/// SEND_F of stage s <-> RECV_F of s + 1, SEND_B of s <-> RECV_B of s - 1.
Action counterpart(const Action& transfer);

}  // namespace concertina
