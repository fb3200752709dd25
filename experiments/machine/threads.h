// How many threads each rank gets.
// Invariant: the number never changes a result, only the speed.
#pragma once

#include <string>
#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// The cores that one rank may use; gathered from all ranks of the job.
struct RankCores {
  std::string host;
  std::vector<int> cpus;   // logical
  std::vector<int> cores;  // one logical CPU of each core
  double quota = 0;        // CPUs' worth of time that the control group grants; 0: no limit
  std::string processor = {};
  double load = 0;  // of the host, mean of a minute, in processes that want to run
};

/// The cores of this process.
RankCores own_cores();

/// Threads of rank `rank`: `wanted` if it is not 0; else an equal share of the cores that its
/// host's ranks may use together, at most its own, at least 1.
int threads_of(int wanted, const std::vector<RankCores>& ranks, int rank);

struct ThreadWarning {
  std::string host, text;
};
/// Ranks and hosts whose ranks want more threads than they have cores, with what would help.
std::vector<ThreadWarning> thread_warnings(const std::vector<RankCores>& ranks,
                                           const std::vector<int>& threads);

/// The ranks of a host that can run at once, with `threads` threads each, where it has more ranks
/// than that; of several such hosts the fewest. 0: no ranks share cores.
int shared_cores(const std::vector<RankCores>& ranks, int threads);

/// One line where the hosts have different processors: instruction sets are agreed on, but a
/// library may cut products by the size of a cache. Empty where they have not.
std::string processor_warning(const std::vector<RankCores>& ranks);

/// Every rank's `own_cores()`, by rank. Collective.
std::vector<RankCores> gather_cores(MpiEnvironment& mpi);

}  // namespace concertina
