// Measures a cluster from the ranks of a launch.
// Invariants: one rank per host measures while the others sleep; no files are left behind. The
// duration is independent of the number of ranks: 1 s plus 0.3 s per host, another 0.4 s per host
// if links have only 50 Mbit/s, and another 3 s each for links, run.dir and disks if their slow
// measurements are repeated. The launch aborts if a rank does not respond for 30 s.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Collective. `directory` contains the runs; `threads` is the number of threads per rank; 0: its
/// share of the cores. Returns all facts on rank 0, for concertina/commands/doctor.py, and some of
/// them on other ranks.
nlohmann::json measure_cluster(MpiEnvironment& mpi, const std::string& directory, int threads);

/// The host that `host` is paired with in this round of a round-robin tournament, in which each
/// pair meets once; nothing if `host` sits out. There are `hosts` - 1 rounds, or, for an odd number
/// of hosts, `hosts` rounds.
std::optional<int> opponent(int host, int round, int hosts);

}  // namespace concertina
