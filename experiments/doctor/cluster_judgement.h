// What makes a launch on a cluster slow or fail, by the facts of its hosts, ranks and links.
// Invariant: pure. One finding a fault, however many hosts have it: it names the first few.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/machine/threads.h"
#include "experiments/predict/link_probe.h"

namespace concertina {

/// A second: small writes that reach the disk, bytes of large ones. 0: not measured.
struct DiskSpeed {
  double syncs = 0, written = 0;
};

/// What one host says. What could not be read or measured is 0 or empty.
struct HostFacts {
  std::string name, processor;               // with its instruction sets
  int ranks = 1, usable = 1;                 // CPUs of its ranks
  std::vector<int> cpus;                     // of the process that started its ranks
  double memory = 0, shared_memory = 0;      // bytes in all; free ones of /dev/shm
  double busy = 0;                           // CPUs' worth of time that other processes take
  double ahead = 0;                          // seconds of its clock before the first host's
  double open_files = 0, locked_memory = 0;  // limits; bytes
  bool infiniband = false;
  LinkSpeed local;    // between two of its ranks
  double looped = 0;  // bytes that meanwhile went through its network interface to itself
  // The directory of runs:
  bool seen = true, excluded = true;   // what the first host makes and locks there
  bool locks = true, reserves = true;  // flock(2) or fcntl(2); fallocate(2)
  std::string refusal;                 // why nothing can be written
  double free = 0;                     // bytes
  DiskSpeed disk;
};

struct RankFacts {
  int host = 0;
  RankCores cores;
  int threads = 1;
  std::string program, mpi;
  std::map<std::string, std::string> environment;  // what matters of it
};

struct ClusterFacts {
  std::string directory;  // of runs
  std::vector<HostFacts> hosts;
  std::vector<RankFacts> ranks;
  std::vector<LinkSpeed> links;  // [hosts x hosts]
};

struct Finding {
  bool error = false;         // a launch would fail, hang or lose state; else it may be slow
  std::string check, what;    // "clock"; hosts or ranks, and figures
  std::string bound, remedy;  // or what most have
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, error, check, what, bound, remedy)

/// Errors first.
std::vector<Finding> judge(const ClusterFacts& facts);

/// Its part on links.
void judge_links(const ClusterFacts& facts, std::vector<Finding>& found);
/// "a; b; c; d; and 3 more".
std::string first_few(const std::vector<std::string>& texts);
/// Adds `finding` with the first few of `what` unless there is none.
void add(std::vector<Finding>& found, const std::vector<std::string>& what, Finding finding);

/// Returns the median over hosts of each host's median link, the better one of an even number: one
/// slow host does not move it, also among three.
LinkSpeed usual_link(const std::vector<LinkSpeed>& links, std::size_t hosts);
/// "5 µs, 4 GiB/s".
std::string speed_text(const LinkSpeed& link);
bool has_low_bandwidth(const LinkSpeed& link, const LinkSpeed& usual);
bool has_high_latency(const LinkSpeed& link, const LinkSpeed& usual);

DiskSpeed usual_disk(const std::vector<DiskSpeed>& disks);
bool is_slow(const DiskSpeed& disk, const DiskSpeed& usual);

/// Who meets `host` in this of hosts - 1 rounds (an odd number: of hosts), in which each two meet
/// once; nobody if it pauses.
std::optional<int> opponent(int host, int round, int hosts);

}  // namespace concertina
