// The time that ranks lose where they share cores: a host with fewer cores than ranks runs as many
// of those that have something to do as it has cores, by turns. Invariant: pure; with a core for
// each rank nothing is lost.
#pragma once

#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// The share of a core that a waiting rank takes: it asks for its message every 60 microseconds or
/// so.
/// Measured by MpiCommunicator.ARankThatWaitsTakesAShareOfItsCore: 0.3 in waits of 2 ms, 0.2 in
/// those of 4 to 8 ms (AMD EPYC, Zen 5).
inline constexpr double kWaitingShare = 0.2;

/// How many times as long a step takes where each host has `cores` cores (0: one for each rank) as
/// with a core for each rank. `hosts`: by rank; empty: one host. Ranks stay on their cores where
/// they divide evenly; one that waits leaves all but kWaitingShare of its core to the others there.
/// Ranks without any action take no part of a core. The time that messages take of a rank's own is
/// work as well; links are as fast as if they were free, and exchanges of gradients are part of the
/// update. Takes time as actions times ranks.
double shared_core_factor(const Plan& plan, const Layout& layout, const Costs& costs,
                          const std::vector<int>& hosts, int cores);

}  // namespace concertina
