// When messages pass the links between ranks, and what of their ranks' time they take meanwhile.
// Invariant: calls come in the order in which messages are ready, so each link serves them first
// come, first served; nothing is interrupted. Between two hosts a message passes the link out of
// one and then, at once or after others there, the link into the other: what waits there does not
// keep the first link from the next message, as in a switch or among streams that share a link.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "parallel/simulate/compute_clock.h"
#include "parallel/simulate/costs.h"

namespace concertina {

class LinkClock {
 public:
  LinkClock(const Costs& costs, ComputeClock& compute) : costs_(costs), compute_(compute) {}

  struct Passage {
    double start = 0, end = 0;
    int behind = -1;  // the message that it had to wait for, as its caller named it; else -1
  };
  /// A message that both ends are ready for at `ready`; `name` >= 0 is for those after it.
  Passage carry(int from, int to, double bytes, double ready, int name);

 private:
  struct Link {
    double free = 0;
    int last = -1;
  };
  enum class Part { channel, out, in };
  Link& at(Part part, int from, int to);
  /// Moves the passage to where the link is free; when that is.
  static double wait(const Link& link, Passage& passage);

  const Costs& costs_;
  ComputeClock& compute_;
  std::unordered_map<std::uint64_t, Link> links_;
};

}  // namespace concertina
