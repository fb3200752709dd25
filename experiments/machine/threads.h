// Chooses the number of threads per rank. Invariant: it affects only the speed, never a result.
#pragma once

#include <string>
#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// The cores that a rank may use, gathered from all ranks of the job.
struct RankCores {
  std::string host;
  std::vector<int> cpus;   // logical
  std::vector<int> cores;  // one logical CPU of each core
  double quota = 0;        // CPU time that the control group grants, in CPUs; 0: no limit
  std::string processor = {};
  double load = 0;  // runnable processes on the host, averaged over a minute
};

/// The cores of this process.
RankCores own_cores();

/// The number of threads of `rank`: `wanted` if it is not 0; otherwise an equal share of the cores
/// that the ranks of its host may use together, at least 1 and at most the number of its own cores.
int threads_of(int wanted, const std::vector<RankCores>& ranks, int rank);

struct ThreadWarning {
  std::string host, text;
};
/// Warnings, with advice, about ranks and hosts that have more threads than CPUs or cores.
std::vector<ThreadWarning> thread_warnings(const std::vector<RankCores>& ranks,
                                           const std::vector<int>& threads);

/// The number of ranks on a host that can run at once with `threads` threads each, if the host has
/// more ranks than that; the minimum over such hosts. 0: no ranks share cores.
int shared_cores(const std::vector<RankCores>& ranks, int threads);

/// A warning if the hosts have different processors: all use the same instruction sets, but a
/// library may tile products by cache size. Empty if they are alike.
std::string processor_warning(const std::vector<RankCores>& ranks);

/// The own_cores() of every rank, in rank order. Collective.
std::vector<RankCores> gather_cores(MpiEnvironment& mpi);

}  // namespace concertina
