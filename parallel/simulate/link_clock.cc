#include "parallel/simulate/link_clock.h"

#include <cmath>

namespace concertina {

LinkClock::Link& LinkClock::at(Part part, int from, int to) {
  const auto key = static_cast<std::uint64_t>(part) << 62 | static_cast<std::uint64_t>(from) << 31 |
                   static_cast<std::uint64_t>(to);
  return links_[key];
}

LinkClock::Passage LinkClock::carry(int from, int to, double bytes, double ready, int name) {
  const LinkCosts& costs = costs_.link(from, to);
  if (std::isinf(costs.bandwidth)) return {ready, ready + costs.latency, -1};
  const double seconds = bytes / costs.bandwidth;
  // References to elements stay valid when the map grows.
  const bool remote = costs_.is_remote(from, to);
  Link& out = remote ? at(Part::out, costs_.hosts[static_cast<std::size_t>(from)], 0)
                     : at(Part::channel, from, to);
  Link& in = remote ? at(Part::in, 0, costs_.hosts[static_cast<std::size_t>(to)]) : out;
  Passage passage{ready, 0, -1};
  const double left = wait(out, passage);
  if (remote) {
    out = {left + seconds, name};
    wait(in, passage);
  }
  in = {passage.start + seconds, name};
  passage.end = passage.start + seconds + costs.latency;
  compute_.take(from, left, left + seconds, costs.send_cpu * costs.bandwidth);
  compute_.take(to, passage.start + costs.latency, passage.end,
                costs.receive_cpu * costs.bandwidth);
  return passage;
}

double LinkClock::wait(const Link& link, Passage& passage) {
  if (link.free > passage.start) {
    passage.start = link.free;
    passage.behind = link.last;
  }
  return passage.start;
}

}  // namespace concertina
