#include "experiments/doctor/cluster_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "core/clock.h"
#include "core/host_name.h"
#include "core/index.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/probe_file.h"
#include "experiments/machine/program.h"
#include "experiments/machine/stall_report.h"
#include "io/file_lock.h"
#include "parallel/comm/clock_sync.h"
#include "parallel/comm/watchdog.h"

extern char** environ;

namespace concertina {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkSpeed, latency, bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiskSpeed, syncs, written)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, name, processor, ranks, usable, cpus, memory,
                                   shared_memory, busy, ahead, open_files, locked_memory,
                                   infiniband, local, looped, seen, excluded, locks, reserves,
                                   refusal, free, disk)

namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> environment_that_matters() {
  constexpr std::array kFamilies{"OMP_",          "DNNL_",        "ONEDNN_",       "CONCERTINA_",
                                 "UCX_",          "FI_",          "OMPI_MCA_btl",  "OMPI_MCA_pml",
                                 "OMPI_MCA_coll", "OMPI_MCA_osc", "OMPI_MCA_smsc", "MALLOC_",
                                 "OMPI_MCA_mtl",  "NCCL_",        "OMPI_MCA_mpi_"};
  std::map<std::string, std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::size_t equals = std::min(text.find('='), text.size() - 1);
    if (std::ranges::any_of(kFamilies, [&](auto* family) { return text.starts_with(family); }))
      found[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return found;
}

/// Seconds that the CPUs of `host` have worked since its start.
double worked_seconds(const std::set<int>& cpus) {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line, name; std::getline(file, line);) {
    std::istringstream fields(line);
    fields >> name;  // "cpu7", then user, nice, system, idle, waiting for storage, ...
    if (name.size() < 4 || !name.starts_with("cpu")) continue;
    if (!cpus.contains(std::stoi(name.substr(3)))) continue;
    double count = 0;
    for (int field = 0; field < 8 && fields >> count; ++field)
      if (field != 3 && field != 4) ticks += count;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Bytes that this host has sent to itself over IP.
double looped_bytes() {
  std::ifstream file("/proc/net/dev");
  double bytes = 0;
  for (std::string name; file >> name;)
    if (name == "lo:") file >> bytes;
  return bytes;
}

double limit_of(int resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

/// All ranks sleep meanwhile, so that what works on the `usable` CPUs is others.
HostFacts look_at_host(int ranks, const std::set<int>& usable) {
  HostFacts host;
  host.name = host_name();
  host.ranks = ranks;
  host.usable = static_cast<int>(usable.size());
  host.processor = cpu_model();
  for (const std::string& set : cpu_instruction_sets()) host.processor += " " + set;
  host.cpus = allowed_cpus(::getppid());
  if (host.cpus.empty()) host.cpus = allowed_cpus();
  if (const auto bytes = memory()) host.memory = static_cast<double>(bytes->total);
  host.shared_memory = static_cast<double>(disk_free("/dev/shm").value_or(0));
  host.open_files = limit_of(RLIMIT_NOFILE);
  host.locked_memory = limit_of(RLIMIT_MEMLOCK);
  std::error_code error;
  host.infiniband = !fs::is_empty("/sys/class/infiniband", error) && !error;
  const double start = now(), before = worked_seconds(usable);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  host.busy = (worked_seconds(usable) - before) / (now() - start);
  return host;
}

/// Seconds of this host's time of day before the first host's. Collective.
double clock_ahead(Communicator& hosts) {
  const ClockOffset steady = measure_offset(hosts);
  const auto day = std::chrono::system_clock::now().time_since_epoch();
  const double mine = std::chrono::duration<double>(day).count() - now();
  return mine - gather_values(hosts, std::span(&mine, 1))[0] - steady.offset;
}

/// Each two hosts measure in one of hosts - 1 rounds; then those whose link seems to be slow again,
/// for a while, if they meet in one of the first rounds. Collective.
std::vector<LinkSpeed> measure_links(Communicator& hosts, Watchdog& watchdog) {
  constexpr double kAgainSeconds = 3, kNever = std::numeric_limits<double>::infinity();
  constexpr int kRoundsAgain = 16;
  const int count = hosts.size();
  std::vector<LinkSpeed> mine(at(count), {kNever, 0}), all;
  mine[at(hosts.rank())] = {0, kNever};
  LinkSpeed usual;
  const auto is_slow = [&](const LinkSpeed& link) {
    return has_low_bandwidth(link, usual) || has_high_latency(link, usual);
  };
  double start = 0;  // of the second time
  for (int rounds = count - 1 + count % 2; rounds > 0;) {
    for (int round = 0; round < rounds; ++round) {
      watchdog.at("measures links between hosts");
      const std::optional<int> peer = opponent(hosts.rank(), round, count);
      if (!peer || !is_slow(mine[at(*peer)])) continue;
      const LinkSpeed link = probe_speed(hosts, *peer, hosts.rank() < *peer);
      LinkSpeed& best = mine[at(*peer)];
      best = {std::min(best.latency, link.latency), std::max(best.bandwidth, link.bandwidth)};
    }
    std::vector<double> figures;
    for (const LinkSpeed& link : mine)
      figures.insert(figures.end(), {link.latency, link.bandwidth});
    figures = gather_values(hosts, figures);
    all.clear();
    for (std::size_t i = 0; i < figures.size(); i += 2) all.push_back({figures[i], figures[i + 1]});
    usual = usual_link(all, at(count));
    if (start == 0) start = now();
    const double seconds = now() - start;
    const bool over = largest_values(hosts, std::span(&seconds, 1))[0] > kAgainSeconds;
    rounds = over || std::ranges::none_of(all, is_slow) ? 0 : std::min(rounds, kRoundsAgain);
  }
  return all;
}

/// Keeps the better figures.
void measure_writes(const std::string& directory, HostFacts& host) try {
  constexpr std::size_t kPage = 4096, kPiece = std::size_t{1} << 20, kMost = 32;
  constexpr double kSeconds = 0.5;
  File file(fmt::format("{}/doctor-{}-{}.tmp", directory, host.name, ::getpid()),
            File::Mode::create);
  ::unlink(file.path().c_str());
  const std::vector<std::byte> data(kPiece, std::byte{1});
  host.reserves = ::fallocate(file.descriptor(), 0, 0, kPage) == 0 || errno == ENOSPC;
  std::vector<double> seconds;  // of each write that reaches the disk: others may write meanwhile
  double start = now(), end = start + kSeconds;
  for (double before = start; seconds.size() < kMost && before < end; before = now()) {
    file.write_at(0, std::span(data).first(kPage));
    file.sync();
    seconds.push_back(now() - before);
  }
  host.disk.syncs = std::max(host.disk.syncs, 1 / median(std::move(seconds)));
  std::size_t pieces = 0;
  for (end = (start = now()) + kSeconds; pieces < kMost && now() < end; ++pieces)
    file.write_at(pieces * kPiece, data);
  file.sync();
  const double written = static_cast<double>(pieces * kPiece) / (now() - start);
  host.disk.written = std::max(host.disk.written, written);
} catch (const Error& error) {
  host.refusal = error.message();
}

/// Whether the lock on `path`, kept in `lock`, is taken; else `host` knows what came of it.
void try_lock(const std::string& path, std::optional<FileLock>& lock, HostFacts& host) try {
  lock.emplace(path, "the file", "");
  host.locks = !fs::exists(path + ".held");
} catch (const Error& error) {
  host.locks = error.code() == Exit::bad_input;  // held by another process
}

/// Tries the directory of runs: the first host makes a file there and locks it. Collective.
void try_directory(Communicator& hosts, const std::string& directory, HostFacts& host) {
  std::optional<ProbeFile> probe;
  std::optional<FileLock> lock;
  nlohmann::json place;
  if (hosts.rank() == 0) try {
      place = probe.emplace(directory).place();
      try_lock(probe->path(), lock, host);
    } catch (const Error& error) {
      host.refusal = error.message();
    }
  place = gather_json(hosts, place)[0];
  if (place.is_null()) return;
  const std::string path = find_probe(place, directory);
  host.seen = !path.empty();
  if (host.seen && hosts.rank() > 0) {
    try_lock(path, lock, host);
    host.excluded = !lock;
  }
  hosts.barrier();
  const std::string in = fs::path(path).parent_path().string();
  if (host.seen) host.free = static_cast<double>(disk_free(in).value_or(0));
  DiskSpeed usual;
  for (int attempt = 0; attempt < 3; ++attempt) {  // again what is slow beside others
    if (host.seen && (attempt == 0 || is_slow(host.disk, usual))) measure_writes(in, host);
    const std::array mine{host.disk.syncs, host.disk.written};
    const std::vector<double> all = gather_values(hosts, mine);
    std::vector<DiskSpeed> disks;
    for (std::size_t i = 0; i < all.size(); i += 2) disks.push_back({all[i], all[i + 1]});
    usual = usual_disk(disks);
  }
}

/// What one rank of each host does. Collective over these.
void measure_hosts(Communicator& hosts, HostFacts host, ClusterFacts& facts, Watchdog& watchdog) {
  facts.links = measure_links(hosts, watchdog);
  watchdog.at("compares the clocks of hosts");
  host.ahead = clock_ahead(hosts);
  watchdog.at("tries the directory of runs");
  try_directory(hosts, facts.directory, host);
  watchdog.at("gathers what hosts have found");
  for (const nlohmann::json& one : gather_json_on_first(hosts, host)) facts.hosts.push_back(one);
}

}  // namespace

ClusterFacts measure_cluster(MpiEnvironment& mpi, const std::string& directory, int threads) {
  Communicator& world = mpi.world();
  constexpr std::chrono::seconds kSilence{24};  // the launch ends a quarter later
  const auto end = [&](const std::string& report) { end_hung_launch(world.rank(), report); };
  auto watchdog = std::make_unique<Watchdog>(world.rank(), kSilence, end);
  watchdog->at("gathers what ranks have");
  ClusterFacts facts{.directory = directory, .hosts = {}, .ranks = {}, .links = {}};
  const std::vector<RankCores> cores = gather_cores(mpi);
  const std::vector<int> hosts = host_of_ranks(world);
  const nlohmann::json mine{program_identity(), mpi_library(), environment_that_matters()};
  for (const nlohmann::json& one : gather_json_on_first(world, mine)) {
    const std::size_t rank = facts.ranks.size();
    facts.ranks.push_back({hosts[rank], cores[rank],
                           threads_of(threads, cores, static_cast<int>(rank)), one[0], one[1],
                           one[2]});
  }
  const auto local = world.split(hosts[at(world.rank())], world.rank());
  const bool speaks = local->rank() == 0;
  const auto speakers = world.split(speaks ? 0 : -1, world.rank());
  world.barrier();
  watchdog->at("looks at the host");
  std::set<int> usable;
  for (std::size_t rank = 0; rank < cores.size(); ++rank)
    if (hosts[rank] == hosts[at(world.rank())])
      usable.insert(cores[rank].cpus.begin(), cores[rank].cpus.end());
  HostFacts host = look_at_host(local->size(), usable);
  world.barrier();
  host.looped = -looped_bytes();
  if (local->size() > 1 && local->rank() < 2)
    host.local = probe_speed(*local, 1 - local->rank(), speaks);
  host.looped += looped_bytes();
  if (speaks) measure_hosts(*speakers, std::move(host), facts, *watchdog);
  watchdog.reset();  // the others wait for the one that speaks, however long
  std::byte done{};
  local->broadcast(Bytes(&done, 1), 0).wait([] {  // leaves its core to the one that measures
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  return facts;
}

}  // namespace concertina
