// Predicts when each action of a plan runs.
// Uses an event queue with one entry per rank, in order of time: the ranks of a host share its link
// to other hosts, and the order on that link depends on time, which a longest path through a fixed
// graph cannot express. Invariant: pure; takes O(n log ranks) time for n actions; the same plan and
// costs always give the same timeline.
#pragma once

#include "parallel/simulate/timeline.h"

namespace concertina {

/// Messages follow parallel/simulate/message_clock.h; in a plan without SEND and RECV, or with
/// Costs::latency_alone, they start when their producer ends. A consumer waits for its message,
/// then does the receiver's part of the copy. An overlapped F and the next action share one
/// interval with the sum of their durations: interleaving saves waits, not work. After a row's last
/// compute, REDUCE (or STEP) waits for the stage's gradients from all holders and adds them; STEP
/// waits for all ranks. `plan` must pass check().
Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs);

}  // namespace concertina
