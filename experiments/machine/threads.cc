#include "experiments/machine/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/host_name.h"
#include "core/text/number_text.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"

namespace concertina {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankCores, host, cpus, cores, quota, processor, load)

namespace {

/// The number of cores that the ranks of `host` may use together, limited by the control group.
int host_cores(const std::vector<RankCores>& ranks, const std::string& host) {
  std::set<int> all;
  double quota = 0;
  for (const RankCores& rank : ranks)
    if (rank.host == host) {
      all.insert(rank.cores.begin(), rank.cores.end());
      quota = std::max(quota, rank.quota);
    }
  const int cores = static_cast<int>(all.size());
  return quota > 0 ? std::min(cores, std::max(1, static_cast<int>(quota))) : cores;
}

int host_ranks(const std::vector<RankCores>& ranks, const std::string& host) {
  return static_cast<int>(std::count_if(ranks.begin(), ranks.end(),
                                        [&](const RankCores& rank) { return rank.host == host; }));
}

}  // namespace

RankCores own_cores() {
  RankCores mine;
  mine.host = host_name();
  mine.cpus = allowed_cpus();
  mine.cores = one_per_core(mine.cpus);
  mine.quota = cpu_quota().value_or(0);
  mine.processor = cpu_model();
  mine.load = load_average();
  return mine;
}

int threads_of(int wanted, const std::vector<RankCores>& ranks, int rank) {
  if (wanted > 0) return wanted;
  const RankCores& mine = ranks.at(static_cast<std::size_t>(rank));
  const int share = host_cores(ranks, mine.host) / host_ranks(ranks, mine.host);
  return std::max(1, std::min(share, static_cast<int>(mine.cores.size())));
}

std::vector<ThreadWarning> thread_warnings(const std::vector<RankCores>& ranks,
                                           const std::vector<int>& threads) {
  std::vector<ThreadWarning> warnings;
  std::map<std::string, int> wanted;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    wanted[ranks[r].host] += threads[r];
    if (threads[r] > static_cast<int>(ranks[r].cpus.size()))
      warnings.push_back(
          {ranks[r].host,
           fmt::format("rank {} on {} needs {} but is bound to CPU {}: launch with "
                       "`mpirun --map-by slot:PE={} --bind-to core` or `--bind-to none`",
                       r, ranks[r].host, counted(threads[r], "thread"), to_ranges(ranks[r].cpus),
                       threads[r])});
  }
  for (const auto& [host, count] : wanted)
    if (const int cores = host_cores(ranks, host); count > cores)
      warnings.push_back(
          {host, fmt::format("{} has {} for {} of {}, which is slower than using fewer "
                             "ranks or threads",
                             host, counted(cores, "core"), counted(count, "thread"),
                             counted(host_ranks(ranks, host), "rank"))});
  return warnings;
}

int shared_cores(const std::vector<RankCores>& ranks, int threads) {
  std::set<std::string> hosts;
  for (const RankCores& rank : ranks) hosts.insert(rank.host);
  int least = 0;
  for (const std::string& host : hosts) {
    const int room = std::max(1, host_cores(ranks, host) / threads);
    if (room < host_ranks(ranks, host)) least = least == 0 ? room : std::min(least, room);
  }
  return least;
}

std::string processor_warning(const std::vector<RankCores>& ranks) {
  const auto other = std::find_if(ranks.begin(), ranks.end(), [&](const RankCores& rank) {
    return rank.processor != ranks[0].processor;
  });
  if (other == ranks.end()) return {};
  return fmt::format(
      "processors differ ({} on {}, {} on {}): all ranks use the same instruction "
      "sets, but oneDNN may tile products by cache size, so a layout may change "
      "the last bits",
      ranks[0].processor, ranks[0].host, other->processor, other->host);
}

std::vector<RankCores> gather_cores(MpiEnvironment& mpi) {
  std::vector<RankCores> all;
  for (const nlohmann::json& one : gather_json(mpi.world(), own_cores())) all.push_back(one);
  return all;
}

}  // namespace concertina
