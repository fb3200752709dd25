// Duration of computation while messages pass: a message over a stream (TCP) uses a share of the
// time of both its ranks for copies and checksums, which a waiting rank does not notice.
// Invariant: for each rank, calls to end() are ordered by `start`.
#pragma once

#include <vector>

namespace concertina {

class ComputeClock {
 public:
  explicit ComputeClock(int ranks) : shares_(static_cast<std::size_t>(ranks)) {}

  /// Reserves `share` of the rank's time for a message from `start` to `end`.
  void take(int rank, double start, double end, double share);
  /// Returns the end of `seconds` of computation that begins at `start`, given the known messages.
  double end(int rank, double start, double seconds);

 private:
  struct Share {
    double start, end, share;
  };
  std::vector<std::vector<Share>> shares_;  // by rank; those that may still matter
};

}  // namespace concertina
