// What ranks lose that share cores: a host with fewer cores than ranks runs as many of those that
// have something to do as it has cores, by turns.
// Invariant: pure; with a core for each rank nothing is lost.
#pragma once

#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// How many times as long a step takes where each host has `cores` cores (0: one for each rank) as
/// with a core for each rank. `hosts`: by rank; empty: one host. Ranks that wait leave their core
/// to others, as `mpi_yield_when_idle` has it; those with work share the cores evenly. Messages
/// take their time as if links were free, exchanges of gradients are part of the update: it is the
/// computation that shares cores, and what it waits for.
double shared_core_factor(const Plan& plan, const Layout& layout, const Costs& costs,
                          const std::vector<int>& hosts, int cores);

}  // namespace concertina
