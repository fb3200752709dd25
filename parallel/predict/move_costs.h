// Predicts the duration of a change from one assignment to another.
// Invariant: pure. Not modeled: ranks that enter the next round at different times, sends to
// several ranks that share a rank's link within a host, other load, copies between a device and the
// host, and the first step afterwards, whose buffers are new to the system.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/plan/moves.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Bytes sent, by (from, to), for distinct ranks.
using PairBytes = std::map<std::pair<int, int>, double>;
PairBytes pair_bytes(const MovePlan& plan, std::size_t kinds);

/// The rank that sends or receives the most bytes.
struct RankBytes {
  int rank = 0;
  double out = 0, in = 0;
  double most() const { return std::max(out, in); }
};
RankBytes busiest_rank(const PairBytes& bytes);

struct MoveSeconds {
  double links = 0;    // messages, for the slowest rank of every round
  double copies = 0;   // within that rank
  double blocks = 0;   // newly allocated memory of that rank
  double rebuild = 0;  // MoveRates::rebuild_s
  double move() const { return links + copies + blocks; }
  double total() const { return move() + rebuild; }
};

/// Returns the duration of the change in `plan`: each round takes as long as its slowest rank.
/// `machine` gives the costs of new bytes, copied bytes and the rebuild. Ranks without a link
/// between them exchange data by copies within the host.
MoveSeconds predict_move(const MovePlan& plan, std::size_t kinds, const MachineModel& machine);

/// Seconds per byte over `link`: from its bandwidth or, if infinite, from both ends' CPU time.
double seconds_per_byte(const LinkCosts& link);

}  // namespace concertina
