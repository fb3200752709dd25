// How a long message is cut for Communicator::exchange().
// Invariant: both ends cut alike, so the pieces of one match those of the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

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

}  // namespace concertina
