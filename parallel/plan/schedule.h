// A plan is a value: one row of actions per rank.
// Invariant: no MPI, no threads, no clock here; the executor knows no schedule by name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/layout.h"

namespace concertina {

/// F forward, I input gradient, W weight gradient, B = I + W. SEND_F/RECV_F activations to the
/// next / from the previous stage, SEND_B/RECV_B gradients to the previous / from the next.
/// A RECV posts the receive (the action that consumes it waits); a SEND starts the transfer.
/// REDUCE stands anywhere after the stage's last W and never waits: the reduction of a bucket
/// starts by itself with its last gradient, and REDUCE only drives it. STEP, once per rank, last,
/// waits for all reductions; then clipping, optimizer and weight gather.
enum class Kind { F, I, W, B, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE, STEP };

struct Action {
  Kind kind = Kind::F;
  int stage = 0;        // Layout's numbering
  int microbatch = -1;  // of the step; -1 for REDUCE and STEP
  /// An F that runs interleaved with the action right after it in the row, a B or I of another
  /// microbatch: both start once both can, and end together.
  bool overlapped = false;
  bool operator==(const Action&) const = default;
};

/// Most actions of a plan. To prove and to predict one takes kActionBytes for each of them.
inline constexpr std::size_t kMostActions = std::size_t{1} << 27;
inline constexpr std::size_t kActionBytes = 128;

/// rows[rank] in order of execution.
struct Plan {
  std::vector<std::vector<Action>> rows;
  bool operator==(const Plan&) const = default;
};

/// Returns "F", "SEND_B"; a NUL follows it, so that its data() is a C string.
std::string_view name_of(Kind kind);

/// "0F0", "1SEND_B3", "0REDUCE_GRAD", "STEP".
std::string to_text(const Action& action);

/// One line per rank, actions separated by commas, an overlapped F in one cell with the action
/// after it: the form of PyTorch's pipelining CSV (schedule_text.cc), with STEP added.
std::string to_text(const Plan& plan);

/// The inverse of to_text; what a schedule file may have besides actions is skipped. `where` names
/// the source in errors, which give row and column from 1 and the token.
Plan parse_plan(std::string_view text, const std::string& where);

bool is_compute(Kind kind);             // F, I, W, B
bool is_transfer(Kind kind);            // SEND_*, RECV_*
bool makes_input_gradient(Kind kind);   // I, B
bool makes_weight_gradient(Kind kind);  // W, B
bool is_send(Kind kind);
/// SEND_F of stage s <-> RECV_F of s + 1, SEND_B of s <-> RECV_B of s - 1.
Action counterpart(const Action& transfer);

}  // namespace concertina
