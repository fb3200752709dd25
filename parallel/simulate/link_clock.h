// Times of messages on the links between ranks, and the CPU time that they use.
// Invariant: calls are in the order in which messages are ready, so links are first come, first
// served, without preemption. Between two hosts, a message passes through the link out of one and
// then, possibly queued, the link into the other. A message queued there does not block the first
// link, as in a switch or with streams that share a link.
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
    int behind = -1;  // the message that it waited for, as named by the caller, or -1
  };
  /// Carries a message whose sender and receiver are ready at time `ready`. `name` >= 0 names it.
  Passage carry(int from, int to, double bytes, double ready, int name);

 private:
  struct Link {
    double free = 0;
    int last = -1;
  };
  enum class Part { channel, out, in };
  Link& at(Part part, int from, int to);
  /// Delays the passage until the link is free, and returns that time.
  static double wait(const Link& link, Passage& passage);

  const Costs& costs_;
  ComputeClock& compute_;
  std::unordered_map<std::uint64_t, Link> links_;
};

}  // namespace concertina
