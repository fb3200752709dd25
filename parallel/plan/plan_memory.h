// How many buffers of each kind a rank needs for its row of a plan.
// Invariant: the counts follow from the row's order alone, so memory is known before the first
// step. An executor that obeys the lifetimes below never needs more, and at the peak needs all of
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// Slots of one stage, for microbatches that are alive at the same time.
struct StageSlots {
  int stage = 0;
  int saved = 0;  // from F until B or W ends; none where the stage is frozen
  int grads = 0;  // from I until W ends; none where I and W are one B
  bool operator==(const StageSlots&) const = default;
};

/// Pools of boundary buffers, one per rank and role, shared by the rank's stages (all boundaries
/// have the same size). "Remote" means that the neighbour stage is on another rank. A buffer
/// between two stages of one rank has one owner, the stage that reads it: what F of stage s writes
/// is an input of s + 1, and what B or I of s + 1 writes is an output_grad of s.
struct RowMemory {
  std::vector<StageSlots> stages;  // of the rank, ascending
  /// Live from the posting of RECV_F (or the local producer's F) to the end of the stage's B or W;
  /// to the end of F if the first unit is frozen, since no gradient needs its input.
  int inputs = 0;
  /// Outputs of a stage that trains to a remote next stage live from F until B or W ends. By then
  /// the gradient has come back, so the send is over; no wait is needed.
  int outputs = 0;
  /// Gradients of outputs live from RECV_B's post (B or I of the next stage, if it is local) until
  /// the stage's B or W ends.
  int output_grads = 0;
  /// Gradients to a remote previous stage live from B or I until their SEND_B is known to be over.
  /// The pool has min(kSendBuffers, SEND_Bs of the row) buffers; when all are in use, the next B or
  /// I first waits for the oldest SEND_B. The checker and the simulator count with that wait.
  int input_grads = 0;
  /// Outputs of a frozen stage to a remote next stage live from F until their SEND_F is known to be
  /// over. No gradient answers it, so that works as for input_grads: min(kSendBuffers, such
  /// SEND_Fs).
  int frozen_outputs = 0;
  /// The boundary buffers of all roles.
  int boundaries() const { return inputs + outputs + output_grads + input_grads + frozen_outputs; }
  bool operator==(const RowMemory&) const = default;
};

/// The memory by rank. `plan` has its transfers and passes check().
std::vector<RowMemory> plan_memory(const Plan& plan, const Layout& layout);
/// The memory of one rank, without a look at the others' rows.
RowMemory plan_memory(const Plan& plan, const Layout& layout, int rank);

/// The largest sum of `weight(stage)` over microbatches between F and B or W. It must be 0 for a
/// frozen stage, which saves nothing.
std::size_t peak_saved(const std::vector<Action>& row,
                       const std::function<std::size_t(int stage)>& weight);

}  // namespace concertina
