// Predicts when each action of a plan runs.
// An event queue of one entry per rank, in order of time: ranks of a host share its link to the
// others, and who comes first there depends on time, which no longest path through a fixed graph
// can say. Invariant: pure; n log(ranks) in the number of actions; the same plan and costs give the
// same timeline, whoever asks.
#pragma once

#include "parallel/simulate/timeline.h"

namespace concertina {

/// Messages pass as parallel/simulate/message_clock.h says; in a plan without SEND and RECV, or
/// with Costs::latency_alone, they start when their producer ends. What consumes one waits for it,
/// then does the receiver's part of the copy. An overlapped F and the action after it have one
/// interval, as long as both by themselves: interleaving saves waits, not work. After a row's last
/// compute, REDUCE (or STEP) waits for the stage's gradients from all holders and adds them; STEP,
/// for all ranks. `plan` must pass check().
Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs);

}  // namespace concertina
