// The order in which gradients and weights travel between the ranks that hold them, and how many
// messages are under way at a time: what communicators do and what the simulator predicts.
// Invariant: pure; in each step every rank sends to one rank and receives from one, and no two
// ranks send to the same, so that no link has to wait for another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// Indices of `buckets` in the order in which their gradients are exchanged. Backward ends with the
/// first units, so the order is by descending first use.
std::vector<std::size_t> exchange_order(const std::vector<Bucket>& buckets);

/// The step, of 1 to size - 1, in which rank `from` of `size` ranks sends to rank `to`: the
/// distance along the ring. In step s rank r sends to r + s and receives from r - s (mod size).
inline int exchange_step(int from, int to, int size) {
  return (to - from + size) % size;
}

/// Whether a rank may begin another step of its exchanges while `steps` of them are under way,
/// which send `bytes` together: enough for the next message to be there when one ends, too few for
/// many ranks to send to one at the same time.
inline bool may_begin_step(int steps, double bytes) {
  constexpr int kSteps = 3;
  constexpr double kBytes = 3 << 15;
  return steps < kSteps || bytes < kBytes;
}

/// An all-gather of more bytes than this is an exchange, in which a rank waits for nobody's round
/// before it sends; of less, latency counts, and doubling has log2(size) rounds of it.
inline constexpr std::size_t kDoublingBytes = 1 << 16;

/// One round of an all-gather by doubling (Bruck et al. 1997, "Efficient algorithms for all-to-all
/// communications", section 4): a rank sends `blocks` blocks, from its own on in the order of the
/// ring, to the rank `distance` before it, and receives as many from the rank `distance` after it,
/// from that rank's own on. A round needs what the rounds before it brought.
struct GatherRound {
  int distance = 0, blocks = 0;
};

/// Round `index` (from 0) of an all-gather of `size` ranks, which has log2(size) rounds, rounded
/// up; later rounds have no blocks.
inline GatherRound gather_round(int index, int size) {
  const int distance = index < 31 ? 1 << index : size;
  return {distance, std::max(std::min(distance, size - distance), 0)};
}

}  // namespace concertina
