// The time of a change from one assignment to another, before anybody makes it.
// Invariant: pure. Not modelled: that ranks go on to the next round at different times, that sends
// to several ranks share a rank's own link within a host, other load, copies between a device and
// the host, and the first step afterwards, whose buffers are new to the system.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/plan/moves.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Bytes that travel, by (from, to): of ranks that differ.
using PairBytes = std::map<std::pair<int, int>, double>;
PairBytes pair_bytes(const MovePlan& plan, std::size_t kinds);

/// Bytes that the rank with most sends or receives, whichever is more.
struct RankBytes {
  int rank = 0;
  double out = 0, in = 0;
  double most() const { return std::max(out, in); }
};
RankBytes busiest_rank(const PairBytes& bytes);

struct MoveSeconds {
  double links = 0;    // messages, of the slowest rank of every round
  double copies = 0;   // within that rank
  double blocks = 0;   // memory that is new to it
  double rebuild = 0;  // MoveRates::rebuild_s
  double move() const { return links + copies + blocks; }
  double total() const { return move() + rebuild; }
};

/// Seconds of a change by `plan`, round by round: each takes as long as its slowest rank. `machine`
/// says what a new byte, a copied byte and the rebuilding take; ranks without a link between them
/// exchange by copies of the host.
MoveSeconds predict_move(const MovePlan& plan, std::size_t kinds, const MachineModel& machine);

/// Seconds a byte of a message over `link`: by its bandwidth, or by what both ends spend on it.
double seconds_per_byte(const LinkCosts& link);

}  // namespace concertina
