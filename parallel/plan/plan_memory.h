// Number of buffers of each kind that a rank needs for its row of a plan.
// Invariant: the counts depend only on the order of actions in the row, so memory is known before
// the first step. An executor that follows the lifetimes below never needs more buffers, and needs
// all of them at the peak.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// Slots of one stage, for microbatches that are live at the same time.
struct StageSlots {
  int stage = 0;
  int saved = 0;  // live from F to the end of B or W; none if the stage is frozen
  int grads = 0;  // live from I to the end of W; none if I and W are one B
  bool operator==(const StageSlots&) const = default;
};

/// Pools of boundary buffers, one per rank and role, shared by the rank's stages (all boundaries
/// have the same size). "Remote" means that the neighboring stage is on another rank. A buffer
/// between two stages of one rank belongs to the stage that reads it: F of stage s writes to an
/// input of s + 1, and B or I of s + 1 writes to an output_grad of s.
struct RowMemory {
  std::vector<StageSlots> stages;  // stages of the rank, ascending
  /// Live from the post of RECV_F (or the local producer's F) to the end of the stage's B or W, or
  /// to the end of F if the first unit is frozen, since no gradient needs its input.
  int inputs = 0;
  /// Outputs from a training stage to a remote next stage, live from F to the end of B or W. By
  /// then the gradient has arrived, so the send is complete and no wait is needed.
  int outputs = 0;
  /// Gradients of outputs, live from the post of RECV_B (or the local next stage's B or I) to the
  /// end of the stage's B or W.
  int output_grads = 0;
  /// Gradients to a remote previous stage, live from B or I until their SEND_B is known to be
  /// complete. The pool has min(kSendBuffers, SEND_Bs in the row) buffers; when all are in use, the
  /// next B or I first waits for the oldest SEND_B. The checker and the simulator model this.
  int input_grads = 0;
  /// Outputs from a frozen stage to a remote next stage, live from F until their SEND_F is known to
  /// be complete. No gradient answers them, so the pool works like input_grads and has
  /// min(kSendBuffers, such SEND_Fs) buffers.
  int frozen_outputs = 0;
  /// Boundary buffers of all roles.
  int boundaries() const { return inputs + outputs + output_grads + input_grads + frozen_outputs; }
  bool operator==(const RowMemory&) const = default;
};

/// The memory by rank. `plan` must include its transfers and pass check().
std::vector<RowMemory> plan_memory(const Plan& plan, const Layout& layout);
/// The memory of one rank, computed from its row only.
RowMemory plan_memory(const Plan& plan, const Layout& layout, int rank);

/// Returns the largest sum of `weight(stage)` over microbatches between F and B or W. The weight of
/// a frozen stage must be 0, because it saves nothing.
std::size_t peak_saved(const std::vector<Action>& row,
                       const std::function<std::size_t(int stage)>& weight);

}  // namespace concertina
