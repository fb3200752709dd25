// Moves the state of all ranks from one assignment to another, in place.
// Invariants: the bits of every weight and of every optimizer tensor that trains before and after
// stay; what begins to train has optimizer state of zero; memory stays within the plan's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/plan/moves.h"
#include "parallel/runtime/state.h"

namespace concertina {

/// Bytes of a piece. A longer message is announced over TCP, and its receiver's answer would queue
/// after all that the receiver itself sends: the two directions of a link would take turns.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 19;

/// Appends `data` as messages to or from `peer`. `Message` is Send or Receive.
template <class Message, class Data>
void add_pieces(Data data, int peer, std::vector<Message>& messages) {
  for (; !data.empty(); data = data.subspan(std::min(kPieceBytes, data.size())))
    messages.push_back({data.first(std::min(kPieceBytes, data.size())), peer});
}

/// Collective. `state` is of the assignment that `plan` starts from; after it, of `to`, which
/// outlives the state. `plan`: plan_moves() of both, the same on every rank. `tensors`: over the
/// world, for views of the state's memory.
void redistribute(State& state, const Assignment& to, const MovePlan& plan, Communicator& tensors);

}  // namespace concertina
