// The order in which gradients and weights travel between the ranks that hold them, and the number
// of messages in flight. Communicators implement it, and the simulator predicts it.
// Invariant: pure functions. In each step, every rank sends to one rank and receives from one, and
// no two ranks send to the same rank, so that no link waits for another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// Returns the indices of `buckets` in the order in which their gradients are exchanged: by
/// descending first use, because backward finishes with the first units.
std::vector<std::size_t> exchange_order(const std::vector<Bucket>& buckets);

/// Returns the step, from 1 to size - 1, in which rank `from` sends to rank `to`: the distance
/// along the ring. In step s, rank r sends to r + s and receives from r - s (mod size).
inline int exchange_step(int from, int to, int size) {
  return (to - from + size) % size;
}

/// Whether a rank may begin another step of its exchanges while `steps` steps with `bytes` bytes in
/// total are in flight. The limit keeps the next message ready when one completes, but prevents
/// many ranks from sending to the same rank at once.
inline bool may_begin_step(int steps, double bytes) {
  constexpr int kSteps = 3;
  constexpr double kBytes = 3 << 15;
  return steps < kSteps || bytes < kBytes;
}

/// All-gathers above this size are exchanges, in which ranks send without waiting for each other.
/// Below it, latency dominates, so they use doubling, which has log2(size) rounds.
inline constexpr std::size_t kDoublingBytes = 1 << 16;

/// One round of an all-gather by doubling (Bruck et al. 1997, "Efficient algorithms for all-to-all
/// communications", section 4). A rank sends `blocks` consecutive blocks along the ring, starting
/// with its own, to the rank `distance` before it. It receives as many blocks from the rank
/// `distance` after it, starting with that rank's own. Rounds depend on earlier ones.
struct GatherRound {
  int distance = 0, blocks = 0;
};

/// Returns round `index` (from 0) of an all-gather of `size` ranks, which has log2(size) rounds,
/// rounded up. Later rounds have no blocks.
inline GatherRound gather_round(int index, int size) {
  const int distance = index < 31 ? 1 << index : size;
  return {distance, std::max(std::min(distance, size - distance), 0)};
}

}  // namespace concertina
