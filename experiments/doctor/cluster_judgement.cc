#include "experiments/doctor/cluster_judgement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/index.h"
#include "core/step_history.h"
#include "core/text/number_text.h"
#include "experiments/machine/machine.h"

namespace concertina {

std::string first_few(const std::vector<std::string>& texts) {
  const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(4, texts.size()));
  const std::size_t more = texts.size() - static_cast<std::size_t>(few);
  return fmt::format("{}{}", fmt::join(texts.begin(), texts.begin() + few, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

void add(std::vector<Finding>& found, const std::vector<std::string>& what, Finding finding) {
  if (what.empty()) return;
  finding.what += first_few(what);
  found.push_back(std::move(finding));
}

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// ---- Hosts -------------------------------------------------------------------------

std::string memory_text(const ClusterFacts& facts, const HostFacts& host) {
  std::vector<double> all;
  for (const HostFacts& one : facts.hosts) all.push_back(one.memory);
  const double usual = median(std::move(all));
  if (std::abs(host.memory - usual) <= 0.1 * usual) return {};
  return fmt::format("{}, the median is {}", bytes_text(host.memory), bytes_text(usual));
}

std::string disk_text(const ClusterFacts& facts, const HostFacts& host) {
  std::vector<DiskSpeed> disks;
  for (const HostFacts& one : facts.hosts) disks.push_back(one.disk);
  const DiskSpeed usual = usual_disk(disks);
  if (!is_slow(host.disk, usual)) return {};
  return fmt::format("{:.0f} fsyncs/s, {}/s, the median is {:.0f}, {}/s", host.disk.syncs,
                     bytes_text(host.disk.written), usual.syncs, bytes_text(usual.written));
}

/// What is wrong with a host; empty: nothing.
struct HostCheck {
  bool error;
  const char* check;
  std::string (*says)(const ClusterFacts& facts, const HostFacts& host);
  const char *bound, *remedy;
};

const HostCheck kHostChecks[] = {
    {true, "run.dir",
     [](auto& facts, auto& host) { return host.seen ? "" : "does not see " + facts.directory; },
     "within 3 s all hosts see what the first one makes there",
     "set run.dir to a file system that all hosts share, at the same path on each"},
    {true, "disk", [](auto&, auto& host) { return host.refusal; }, "run.dir can be written",
     "free some space, raise the quota, or set run.dir to where you may write"},
    {true, "locks",
     [](auto&, auto& host) {
       return std::string(host.excluded ? "" : "a lock that another host holds is granted");
     },
     "one process holds a lock in run.dir, so that a run has one launch",
     "mount it with locks between hosts (NFS without nolock, Lustre with flock)"},
    {false, "locks",
     [](auto&, auto& host) { return std::string(host.locks ? "" : "locks are refused"); },
     "file locks in run.dir", "mount it with locks, or remove run.lock.held by hand after a kill"},
    {false, "disk",
     [](auto&, auto& host) {
       return host.refusal.empty() && host.free > 0 && host.free < 1024 * kMiB
                  ? bytes_text(host.free) + " are free"
                  : "";
     },
     "1 GiB is free in run.dir", "free some space, or set run.dir to another disk"},
    {false, "reserve",
     [](auto&, auto& host) { return std::string(host.reserves ? "" : "fallocate is refused"); },
     "room for the next checkpoint is held in run.dir",
     "watch the free space: there a full disk shows only once a checkpoint fails"},
    {false, "disk speed", disk_text, "10 fsyncs/s, and a quarter of the median",
     "see who else writes there, or set run.dir to a quicker disk: all ranks wait for the slowest"},
    {false, "/dev/shm",
     [](auto&, auto& host) {
       return host.shared_memory >= 64 * kMiB * host.ranks
                  ? ""
                  : fmt::format("{} are free", bytes_text(host.shared_memory));
     },
     "64 MiB per rank, for MPI's messages and for snapshots",
     "remove what lies there, or mount it with a larger size= (a container: --shm-size)"},
    {true, "limits",
     [](auto& facts, auto& host) {
       const double least = 256 + static_cast<double>(facts.ranks.size());
       return host.open_files >= least
                  ? ""
                  : fmt::format("{:.0f} open files of {:.0f}", host.open_files, least);
     },
     "256 open files, and one per rank",
     "ulimit -n 4096, or LimitNOFILE of the batch system's daemon"},
    {false, "limits",
     [](auto&, auto& host) {
       return host.infiniband && host.locked_memory < 64 * kMiB * host.ranks
                  ? bytes_text(host.locked_memory) + " of locked memory"
                  : "";
     },
     "64 MiB per rank where there is InfiniBand, else MPI may not use it",
     "ulimit -l unlimited, or LimitMEMLOCK=infinity of the batch system's daemon"},
    {false, "clock",
     [](auto&, auto& host) {
       return std::abs(host.ahead) <= 0.5 ? "" : fmt::format("{:+.2f} s", host.ahead);
     },
     "0.5 s from the first host's clock",
     "start chronyd or systemd-timesyncd there: times of logs and files mislead"},
    {false, "load",
     [](auto&, auto& host) {
       return host.busy <= std::max(0.5, 0.1 * host.usable)
                  ? ""
                  : fmt::format("others use {:.1f} of {} CPUs", host.busy, host.usable);
     },
     "a tenth of the CPUs, or half a one",
     "see with `top` what runs there, end it or leave the host out: all ranks wait for the "
     "slowest"},
    {false, "memory", memory_text, "a tenth from the median",
     "plan for the smallest (`concertina plan search`), or leave it out"},
};

// ---- Ranks -------------------------------------------------------------------------

/// The ranks of one host.
struct HostRanks {
  std::vector<int> ranks;
  std::set<int> cpus, cores;  // that any of them may use
  bool crowded = false;       // some CPU has more threads than one, and than the others
};

std::vector<HostRanks> ranks_by_host(const ClusterFacts& facts) {
  std::vector<HostRanks> hosts(facts.hosts.size());
  std::vector<std::map<int, double>> threads(hosts.size());  // by CPU
  std::vector<double> even(hosts.size());
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const RankFacts& one = facts.ranks[rank];
    HostRanks& on = hosts[at(one.host)];
    on.ranks.push_back(static_cast<int>(rank));
    on.cpus.insert(one.cores.cpus.begin(), one.cores.cpus.end());
    on.cores.insert(one.cores.cores.begin(), one.cores.cores.end());
    for (const int cpu : one.cores.cpus)
      threads[at(one.host)][cpu] += one.threads / static_cast<double>(one.cores.cpus.size());
    even[at(one.host)] += one.threads / static_cast<double>(facts.hosts[at(one.host)].cpus.size());
  }
  for (std::size_t i = 0; i < hosts.size(); ++i)
    hosts[i].crowded = std::ranges::any_of(
        threads[i], [&](const auto& cpu) { return cpu.second > std::max(1.0, even[i]) + 1e-6; });
  return hosts;
}

/// "ranks 2-3 on h2": value, of those that have another value than most; "" is no value.
void judge_same(const ClusterFacts& facts, const std::vector<std::string>& values, Finding finding,
                std::vector<Finding>& found) {
  std::map<std::string, std::vector<int>> with;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    if (!values[rank].empty()) with[values[rank]].push_back(static_cast<int>(rank));
  const auto less = [](const auto& a, const auto& b) {  // of as many, rank 0's is the usual one
    return std::pair(a.second.size(), -a.second[0]) < std::pair(b.second.size(), -b.second[0]);
  };
  if (with.size() < 2) return;
  const auto usual = std::ranges::max_element(with, less);
  std::vector<std::string> unlike;
  for (const auto& [value, ranks] : with) {
    if (value == usual->first) continue;
    std::set<std::string> hosts;
    for (const int rank : ranks) hosts.insert(facts.ranks[at(rank)].cores.host);
    unlike.push_back(fmt::format("{} on {}: {}", counted(std::ssize(ranks), "rank"),
                                 first_few({hosts.begin(), hosts.end()}), value));
  }
  finding.bound = "most ranks: " + usual->first;
  add(found, unlike, std::move(finding));
}

void judge_cores(const ClusterFacts& facts, std::vector<Finding>& found) {
  const std::vector<HostRanks> hosts = ranks_by_host(facts);
  std::vector<std::string> crowded, counts, bindings;
  std::vector<RankCores> cores;
  std::vector<int> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (const HostRanks& on = hosts[i]; on.crowded)
      crowded.push_back(
          fmt::format("{}: {} on CPU {} of {}", facts.hosts[i].name, ranks_text(on.ranks),
                      to_ranges({on.cpus.begin(), on.cpus.end()}), to_ranges(facts.hosts[i].cpus)));
  for (const RankFacts& rank : facts.ranks) {
    const HostRanks& on = hosts[at(rank.host)];
    const bool bound = rank.cores.cpus.size() < on.cpus.size();
    cores.push_back(rank.cores);
    threads.push_back(on.crowded ? 0 : rank.threads);
    counts.push_back(on.crowded ? "" : counted(std::ssize(on.cores), "core"));
    bindings.push_back(on.crowded || on.ranks.size() < 2 ? "" : bound ? "bound" : "not bound");
  }
  constexpr const char* kBind =
      "`mpirun --map-by slot:PE=THREADS --bind-to core`, or --bind-to none, and one launch a host";
  add(found, crowded, {false, "binding", "", "a CPU per thread", kBind});
  judge_same(facts, bindings, {false, "binding", "", "", kBind}, found);
  add(found, thread_warnings(cores, threads),
      {false, "threads", "", "a core per thread", "fewer ranks there, or run.threads"});
  judge_same(facts, counts,
             {false, "cores", "", "", "ranks by cores (-H a:4,b:2), or see what limits them there"},
             found);
}

void judge_ranks(const ClusterFacts& facts, std::vector<Finding>& found) {
  std::set<std::string> names;
  for (const RankFacts& rank : facts.ranks)
    for (const auto& [name, value] : rank.environment) names.insert(name);
  const auto same = [&](const auto& value, Finding finding) {
    std::vector<std::string> values;
    for (const RankFacts& rank : facts.ranks) values.push_back(value(rank));
    judge_same(facts, values, std::move(finding), found);
  };
  same([](const RankFacts& rank) { return rank.program; },
       {true, "program", "", "", "install one build on all hosts: else a launch is refused"});
  same([](const RankFacts& rank) { return rank.mpi; },
       {true, "mpi", "", "", "one MPI library on all hosts: see PATH and LD_LIBRARY_PATH there"});
  same([&](const RankFacts& rank) { return facts.hosts[at(rank.host)].processor; },
       {false, "processor", "", "",
        "one kind of processor: else all compute by what the weakest has, maybe to other bits"});
  for (const std::string& name : names)
    same(
        [&](const RankFacts& rank) {
          const auto value = rank.environment.find(name);
          return value == rank.environment.end() ? "not set" : value->second;
        },
        {name.starts_with("CONCERTINA__"), "environment", name + " of ", "",
         fmt::format("`mpirun -x {}`, and see what the shell's start files set there", name)});
}

}  // namespace

DiskSpeed usual_disk(const std::vector<DiskSpeed>& disks) {
  std::vector<double> syncs, written;
  for (const DiskSpeed& disk : disks)
    if (disk.syncs > 0) syncs.push_back(disk.syncs), written.push_back(disk.written);
  return {median(std::move(syncs)), median(std::move(written))};
}

bool is_slow(const DiskSpeed& disk, const DiskSpeed& usual) {
  const bool few = disk.syncs < std::max(10.0, std::min(usual.syncs / 4, 50.0));
  return disk.syncs > 0 && (few || disk.written < std::min(usual.written / 4, 100 * kMiB));
}

std::vector<Finding> judge(const ClusterFacts& facts) {
  std::vector<Finding> found;
  judge_links(facts, found);
  for (const HostCheck& check : kHostChecks) {
    std::vector<std::string> hosts;
    for (const HostFacts& host : facts.hosts)
      if (const std::string text = check.says(facts, host); !text.empty())
        hosts.push_back(fmt::format("{}: {}", host.name, text));
    add(found, hosts, {check.error, check.check, "", check.bound, check.remedy});
  }
  judge_cores(facts, found);
  judge_ranks(facts, found);
  std::ranges::stable_partition(found, &Finding::error);
  return found;
}

}  // namespace concertina
