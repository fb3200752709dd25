// How long computing takes while messages pass: a message over a stream (TCP) takes a share of both
// its ranks' time on its way, for copies and checksums. A rank that waits meanwhile does not
// notice. Invariant: calls of end() for one rank come in order of `start`.
#pragma once

#include <vector>

namespace concertina {

class ComputeClock {
 public:
  explicit ComputeClock(int ranks) : shares_(static_cast<std::size_t>(ranks)) {}

  /// From `start` to `end`, `share` of the rank's time is a message's.
  void take(int rank, double start, double end, double share);
  /// When `seconds` of computing end that begin at `start`, as far as messages are known by now.
  double end(int rank, double start, double seconds);

 private:
  struct Share {
    double start, end, share;
  };
  std::vector<std::vector<Share>> shares_;  // by rank; those that may still matter
};

}  // namespace concertina
