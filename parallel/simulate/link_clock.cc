#include "parallel/simulate/link_clock.h"

#include <array>
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
  std::array<Link*, 2> links{};
  if (costs_.is_remote(from, to)) {
    // The map's elements stay where they are when it grows.
    links = {&at(Part::out, costs_.hosts[static_cast<std::size_t>(from)], 0),
             &at(Part::in, 0, costs_.hosts[static_cast<std::size_t>(to)])};
  } else {
    links.fill(&at(Part::channel, from, to));
  }
  Passage passage{ready, 0, -1};
  for (const Link* link : links)
    if (link->free > passage.start) {
      passage.start = link->free;
      passage.behind = link->last;
    }
  passage.end = passage.start + seconds + costs.latency;
  const double over = passage.start + seconds;
  for (Link* link : links) *link = {over, name};
  compute_.take(from, passage.start, over, costs.send_cpu * costs.bandwidth);
  compute_.take(to, passage.start + costs.latency, passage.end,
                costs.receive_cpu * costs.bandwidth);
  return passage;
}

}  // namespace concertina
