// Time lost when ranks share cores: a host with fewer cores than ranks runs at most one active rank
// per core at a time. Invariant: pure; nothing is lost with one core per rank.
#pragma once

#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// The share of a core that a waiting rank uses, because it polls about every 60 microseconds.
/// Measured by MpiCommunicator.ARankThatWaitsTakesAShareOfItsCore: 0.3 in waits of 2 ms, 0.2 in
/// waits of 4 to 8 ms (AMD EPYC, Zen 5).
inline constexpr double kWaitingShare = 0.2;

/// Returns the duration of a step with `cores` cores per host (0: one per rank), relative to one
/// core per rank. `hosts` is by rank (empty: a single host). Ranks stay on their cores if they can
/// be divided evenly; a waiting rank leaves all but kWaitingShare of its core to others. Ranks
/// without actions use no core. CPU time of messages counts as work; links are uncontended, and
/// exchanges of gradients are part of the update. Takes time proportional to actions times ranks.
double shared_core_factor(const Plan& plan, const Layout& layout, const Costs& costs,
                          const std::vector<int>& hosts, int cores);

}  // namespace concertina
