// Moves the state of all ranks from one assignment to another, in place.
// Invariants: the bits of every weight and of every optimizer tensor that trains before and after
// stay; what begins to train has optimizer state of zero; memory stays within the plan's.
#pragma once

#include "parallel/comm/communicator.h"
#include "parallel/plan/moves.h"
#include "parallel/runtime/state.h"

namespace concertina {

/// Collective. `state` is of the assignment that `plan` starts from; after it, of `to`, which
/// outlives the state. `plan`: plan_moves() of both, the same on every rank. `tensors`: over the
/// world, for views of the state's memory.
void redistribute(State& state, const Assignment& to, const MovePlan& plan, Communicator& tensors);

}  // namespace concertina
