// Measures a cluster from the ranks of a launch on it.
// Invariants: one rank of a host measures, the others sleep meanwhile; nothing is left in any
// directory. It takes 1 s and 0.3 s per host (where links are slow also 0.4 s per host at 50
// Mbit/s, and 3 s once more for each of links, run.dir and disks that are not as they should be),
// whatever the number of ranks. A rank that does not answer for 30 s ends the launch.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Collective. `directory`: of runs; `threads`: of a rank, 0: its share of the cores. Returns the
/// facts on rank 0, for concertina/commands/doctor.py, and not all of them elsewhere.
nlohmann::json measure_cluster(MpiEnvironment& mpi, const std::string& directory, int threads);

/// Who meets `host` in this of hosts - 1 rounds (an odd number: of hosts), in which each two meet
/// once; nobody if it pauses.
std::optional<int> opponent(int host, int round, int hosts);

}  // namespace concertina
