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
#include <functional>
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
#include "experiments/machine/threads.h"
#include "experiments/predict/link_probe.h"
#include "io/file_lock.h"
#include "parallel/comm/clock_sync.h"
#include "parallel/comm/watchdog.h"

extern char** environ;

namespace concertina {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkSpeed, latency, bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadWarning, host, text)

namespace {

namespace fs = std::filesystem;

/// Small synchronous writes per second, and bytes per second in large writes. 0: not measured.
struct DiskSpeed {
  double syncs = 0, written = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiskSpeed, syncs, written)

/// The median of each value; the better of the two middle values for an even count.
LinkSpeed better_middle(std::vector<LinkSpeed> links) {
  if (links.empty()) return {};
  const auto middle = links.begin() + static_cast<std::ptrdiff_t>((links.size() - 1) / 2);
  std::ranges::nth_element(links, middle, {}, &LinkSpeed::latency);
  const double latency = middle->latency;
  std::ranges::nth_element(links, middle, std::ranges::greater(), &LinkSpeed::bandwidth);
  return {latency, middle->bandwidth};
}

/// The median over hosts of each host's median link, which a single slow host does not affect, even
/// if there are only three hosts.
LinkSpeed typical_link(const std::vector<LinkSpeed>& links, std::size_t hosts) {
  std::vector<LinkSpeed> typical;
  for (std::size_t host = 0; hosts > 1 && host < hosts; ++host) {
    std::vector<LinkSpeed> own;
    for (std::size_t peer = 0; peer < hosts; ++peer)
      if (peer != host) own.push_back(links[host * hosts + peer]);
    typical.push_back(better_middle(std::move(own)));
  }
  return better_middle(std::move(typical));
}

/// `values`: `syncs` and `written` of each disk.
DiskSpeed typical_disk(const std::vector<double>& values) {
  std::vector<double> syncs, written;
  for (std::size_t i = 0; i < values.size(); i += 2)
    if (values[i] > 0) syncs.push_back(values[i]), written.push_back(values[i + 1]);
  return {median(std::move(syncs)), median(std::move(written))};
}

/// Thresholds beyond which a link is slow.
LinkSpeed slow_link(const LinkSpeed& typical) {
  return {std::max(4 * typical.latency, typical.latency + 50e-6), typical.bandwidth / 4};
}
DiskSpeed slow_disk(const DiskSpeed& typical) {
  constexpr double kMost = 100.0 * (1 << 20);
  return {std::max(10.0, std::min(typical.syncs / 4, 50.0)), std::min(typical.written / 4, kMost)};
}

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

/// The total seconds for which these CPUs of this host have been busy since boot.
double worked_seconds(const std::set<int>& cpus) {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line, name; std::getline(file, line);) {
    std::istringstream fields(line);
    fields >> name;  // "cpu7", then user, nice, system, idle, iowait, ...
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

/// Examines a host; values that cannot be read are 0 or empty. All ranks sleep meanwhile, so any
/// work on the `usable` CPUs comes from other processes.
nlohmann::json look_at_host(int ranks, const std::set<int>& usable) {
  std::string processor = cpu_model();
  for (const std::string& set : cpu_instruction_sets()) processor += " " + set;
  const std::vector<int> starter = allowed_cpus(::getppid()), own = allowed_cpus();
  const auto bytes = memory();
  std::error_code error;
  const bool infiniband = !fs::is_empty("/sys/class/infiniband", error) && !error;
  const double start = now(), before = worked_seconds(usable);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double busy = (worked_seconds(usable) - before) / (now() - start);
  return {{"name", host_name()},
          {"processor", processor},
          {"ranks", ranks},
          {"usable", usable.size()},                  // CPUs of its ranks
          {"cpus", starter.empty() ? own : starter},  // of the process that started its ranks
          {"memory", bytes ? static_cast<double>(bytes->total) : 0.0},
          {"shared_memory", disk_free("/dev/shm").value_or(0)},  // free bytes
          {"open_files", limit_of(RLIMIT_NOFILE)},
          {"locked_memory", limit_of(RLIMIT_MEMLOCK)},
          {"infiniband", infiniband},
          {"busy", busy},           // CPUs used by other processes
          {"local", LinkSpeed{}}};  // between two of its ranks
}

/// How far this host's clock is ahead of the first host's, in seconds. Collective.
double clock_ahead(Communicator& hosts) {
  const ClockOffset steady = measure_offset(hosts);
  const auto day = std::chrono::system_clock::now().time_since_epoch();
  const double mine = std::chrono::duration<double>(day).count() - now();
  return mine - gather_values(hosts, std::span(&mine, 1))[0] - steady.offset;
}

/// Measures the link between each pair of hosts, in rounds. Then repeats the first rounds for pairs
/// whose link seems slow, for a limited time. Collective.
std::vector<LinkSpeed> measure_links(Communicator& hosts, Watchdog& watchdog) {
  constexpr double kAgainSeconds = 3, kNever = std::numeric_limits<double>::infinity();
  constexpr int kRoundsAgain = 16;
  const int count = hosts.size();
  std::vector<LinkSpeed> mine(at(count), {kNever, 0}), all;
  mine[at(hosts.rank())] = {0, kNever};
  LinkSpeed bound = slow_link({});
  const auto is_slow = [&](const LinkSpeed& link) {
    return link.latency > bound.latency || link.bandwidth < bound.bandwidth;
  };
  double start = 0;  // of the second measurement
  for (int rounds = count - 1 + count % 2; rounds > 0;) {
    for (int round = 0; round < rounds; ++round) {
      watchdog.at("measures links between hosts");
      const std::optional<int> peer = opponent(hosts.rank(), round, count);
      if (!peer || !is_slow(mine[at(*peer)])) continue;
      const LinkSpeed link = probe_speed(hosts, *peer, hosts.rank() < *peer);
      LinkSpeed& best = mine[at(*peer)];
      best = {std::min(best.latency, link.latency), std::max(best.bandwidth, link.bandwidth)};
    }
    std::vector<double> values;
    for (const LinkSpeed& link : mine) values.insert(values.end(), {link.latency, link.bandwidth});
    values = gather_values(hosts, values);
    all.clear();
    for (std::size_t i = 0; i < values.size(); i += 2) all.push_back({values[i], values[i + 1]});
    bound = slow_link(typical_link(all, at(count)));
    if (start == 0) start = now();
    const double seconds = now() - start;
    const bool over = largest_values(hosts, std::span(&seconds, 1))[0] > kAgainSeconds;
    rounds = over || std::ranges::none_of(all, is_slow) ? 0 : std::min(rounds, kRoundsAgain);
  }
  return all;
}

/// Measures writes in `directory`. `disk` keeps the better of the old and new values.
void measure_writes(const std::string& directory, nlohmann::json& host, DiskSpeed& disk) try {
  constexpr std::size_t kPage = 4096, kPiece = std::size_t{1} << 20, kMost = 32;
  constexpr double kSeconds = 0.5;
  File file(fmt::format("{}/doctor-{}-{}.tmp", directory, host_name(), ::getpid()),
            File::Mode::create);
  ::unlink(file.path().c_str());
  const std::vector<std::byte> data(kPiece, std::byte{1});
  host["reserves"] = ::fallocate(file.descriptor(), 0, 0, kPage) == 0 || errno == ENOSPC;
  std::vector<double> seconds;  // of each synchronous write; the median counts: others may write
  double start = now(), end = start + kSeconds;
  for (double before = start; seconds.size() < kMost && before < end; before = now()) {
    file.write_at(0, std::span(data).first(kPage));
    file.sync();
    seconds.push_back(now() - before);
  }
  disk.syncs = std::max(disk.syncs, 1 / median(std::move(seconds)));
  std::size_t pieces = 0;
  for (end = (start = now()) + kSeconds; pieces < kMost && now() < end; ++pieces)
    file.write_at(pieces * kPiece, data);
  file.sync();
  const double written = static_cast<double>(pieces * kPiece) / (now() - start);
  disk.written = std::max(disk.written, written);
} catch (const Error& error) {
  host["refusal"] = error.message();
}

/// Tries to take the lock on `path` and keeps it in `lock`; records a failure in `host`.
void try_lock(const std::string& path, std::optional<FileLock>& lock, nlohmann::json& host) try {
  lock.emplace(path, "the file", "");
  host["locks"] = !fs::exists(path + ".held");
} catch (const Error& error) {
  host["locks"] = error.code() == Exit::bad_input;  // held by another process
}

/// Tests the directory of runs: the first host creates a file there and locks it. Returns the usual
/// disk speed. Collective.
DiskSpeed try_directory(Communicator& hosts, const std::string& directory, nlohmann::json& host) {
  host.update({{"seen", true},      // the file is visible
               {"excluded", true},  // the lock is held elsewhere
               {"locks", true},     // flock(2) or fcntl(2)
               {"reserves", true},  // fallocate(2)
               {"refusal", ""},     // why writing failed
               {"free", 0.0},       // bytes
               {"disk", DiskSpeed{}}});
  std::optional<ProbeFile> probe;
  std::optional<FileLock> lock;
  nlohmann::json place;
  if (hosts.rank() == 0) try {
      place = probe.emplace(directory).place();
      try_lock(probe->path(), lock, host);
    } catch (const Error& error) {
      host["refusal"] = error.message();
    }
  place = gather_json(hosts, place)[0];
  if (place.is_null()) return {};
  const std::string path = find_probe(place, directory);
  const bool seen = !path.empty();
  host["seen"] = seen;
  if (seen && hosts.rank() > 0) {
    try_lock(path, lock, host);
    host["excluded"] = !lock;
  }
  hosts.barrier();
  const std::string in = fs::path(path).parent_path().string();
  if (seen) host["free"] = static_cast<double>(disk_free(in).value_or(0));
  DiskSpeed disk, typical;
  for (int attempt = 0; attempt < 3; ++attempt) {  // repeat slow measurements
    const DiskSpeed bound = slow_disk(typical);
    const bool slow = disk.syncs < bound.syncs || disk.written < bound.written;
    if (seen && (attempt == 0 || (disk.syncs > 0 && slow))) measure_writes(in, host, disk);
    typical = typical_disk(gather_values(hosts, std::array{disk.syncs, disk.written}));
  }
  host["disk"] = disk;
  return typical;
}

/// The measurements by one rank per host. Collective over these ranks.
void measure_hosts(Communicator& hosts, nlohmann::json host, nlohmann::json& facts,
                   Watchdog& watchdog) {
  const std::vector<LinkSpeed> links = measure_links(hosts, watchdog);
  watchdog.at("compares the hosts' clocks");
  host["ahead"] = clock_ahead(hosts);  // seconds ahead of the first host's clock
  watchdog.at("tests the directory of runs");
  const DiskSpeed disk = try_directory(hosts, facts["directory"], host);
  watchdog.at("gathers the results of hosts");
  facts["hosts"] = gather_json_on_first(hosts, host);
  const LinkSpeed typical = typical_link(links, at(hosts.size()));
  facts.update({{"usual_link", typical},
                {"slow_link", slow_link(typical)},
                {"usual_disk", disk},
                {"slow_disk", slow_disk(disk)}});
  for (const LinkSpeed& link : links) {
    facts["links"]["latency"].push_back(link.latency);
    facts["links"]["bandwidth"].push_back(link.bandwidth);
  }
}

}  // namespace

std::optional<int> opponent(int host, int round, int hosts) {
  const int last = hosts - 1 + hosts % 2;  // odd; the host that stays in place
  int other =
      host == last ? round * ((last + 1) / 2) % last : ((round - host) % last + last) % last;
  if (other == host) other = last;
  return other < hosts ? std::optional(other) : std::nullopt;
}

nlohmann::json measure_cluster(MpiEnvironment& mpi, const std::string& directory, int threads) {
  Communicator& world = mpi.world();
  constexpr std::chrono::seconds kSilence{24};  // the launch aborts after 1.25 times this
  const auto end = [&](const std::string& report) { end_hung_launch(world.rank(), report); };
  auto watchdog = std::make_unique<Watchdog>(world.rank(), kSilence, end);
  watchdog->at("gathers the results of ranks");
  nlohmann::json facts = {{"directory", directory}, {"ranks", nlohmann::json::array()}};
  const std::vector<RankCores> cores = gather_cores(mpi);
  const std::vector<int> hosts = host_of_ranks(world);
  const nlohmann::json mine{program_identity(), mpi_library(), environment_that_matters()};
  std::vector<int> counts;
  for (const nlohmann::json& one : gather_json_on_first(world, mine)) {
    const std::size_t rank = counts.size();
    counts.push_back(threads_of(threads, cores, static_cast<int>(rank)));
    facts["ranks"].push_back({{"host", hosts[rank]},
                              {"name", cores[rank].host},
                              {"cpus", cores[rank].cpus},
                              {"cores", cores[rank].cores},
                              {"threads", counts[rank]},
                              {"program", one[0]},
                              {"mpi", one[1]},
                              {"environment", one[2]}});
  }
  if (world.rank() == 0) facts["thread_warnings"] = thread_warnings(cores, counts);
  const auto local = world.split(hosts[at(world.rank())], world.rank());
  const bool speaks = local->rank() == 0;
  const auto speakers = world.split(speaks ? 0 : -1, world.rank());
  world.barrier();
  watchdog->at("examines the host");
  std::set<int> usable;
  for (std::size_t rank = 0; rank < cores.size(); ++rank)
    if (hosts[rank] == hosts[at(world.rank())])
      usable.insert(cores[rank].cpus.begin(), cores[rank].cpus.end());
  nlohmann::json host = look_at_host(local->size(), usable);
  world.barrier();
  const double looped = looped_bytes();
  if (local->size() > 1 && local->rank() < 2)
    host["local"] = probe_speed(*local, 1 - local->rank(), speaks);
  host["looped"] = looped_bytes() - looped;  // sent to itself through a network interface
  if (speaks) measure_hosts(*speakers, std::move(host), facts, *watchdog);
  watchdog.reset();  // the others wait for the measuring rank, however long it takes
  std::byte done{};
  local->broadcast(Bytes(&done, 1), 0).wait([] {  // yields its core to the measuring rank
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  return facts;
}

}  // namespace concertina
