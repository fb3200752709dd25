// Moves the state of all ranks from one assignment to another, in place.
// Invariants: weights, and the optimizer state of buckets that train before and after, stay
// bit-identical; buckets that start to train have zero state; memory use stays within the plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/plan/moves.h"
#include "parallel/runtime/state.h"

namespace concertina {

/// Size of a piece in bytes. A longer message is announced over TCP, and the receiver's reply would
/// queue behind its own sends, so that the two directions of a link would alternate.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 19;

/// Appends `data` as messages to or from `peer`. `Message` is Send or Receive.
template <class Message, class Data>
void add_pieces(Data data, int peer, std::vector<Message>& messages) {
  for (; !data.empty(); data = data.subspan(std::min(kPieceBytes, data.size())))
    messages.push_back({data.first(std::min(kPieceBytes, data.size())), peer});
}

/// Moves `state` from the assignment at the start of `plan` to `to`, which must outlive the state.
/// `plan` is plan_moves() from one to the other, the same on every rank. `tensors` spans the world
/// and passes views of the state's memory. Collective.
void redistribute(State& state, const Assignment& to, const MovePlan& plan, Communicator& tensors);

}  // namespace concertina
