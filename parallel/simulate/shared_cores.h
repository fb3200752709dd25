// What ranks lose that share cores: a host with fewer cores than ranks runs as many of those that
// have something to do as it has cores, by turns.
// Invariant: pure; with a core for each rank nothing is lost.
#pragma once

#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// How many times as long a step takes where each host has `cores` cores (0: one for each rank) as
/// with a core for each rank. `hosts`: by rank; empty: one host. Ranks that wait leave their core
/// to others, as `mpi_yield_when_idle` has it; those with work share the cores evenly. What messages
/// take of a rank's own time is work as well; links are as fast as if they were free, and exchanges
/// of gradients are part of the update.
double shared_core_factor(const Plan& plan, const Layout& layout, const Costs& costs,
                          const std::vector<int>& hosts, int cores);

}  // namespace concertina
