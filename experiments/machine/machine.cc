#include "experiments/machine/machine.h"
#include "io/file.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// The first line of a file in /proc or /sys; empty if it cannot be read.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value in the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) == 0 && colon != std::string::npos)
      return colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
  }
  return {};
}

std::optional<double> number(const std::string& text) {
  std::istringstream in(text);
  double value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

/// The value of `key` in a file of lines "key value"; 0 if it is missing.
double stat_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  for (double value = 0; file >> name >> value;)
    if (name == key) return value;
  return 0;
}

/// The memory limit of a control group, and how much of it is left.
struct GroupMemory {
  double limit = 0, left = 0;
};

/// The memory of the control group in `directory`; nullopt if it has no limit. Clean file pages
/// count as free because the kernel can reclaim them.
std::optional<GroupMemory> group_memory(const std::string& directory, const char* limit_file,
                                        const char* used_file, const char* prefix) {
  const auto limit = number(first_line(directory + limit_file));
  const auto used = number(first_line(directory + used_file));
  if (!limit || !used) return std::nullopt;
  double files = 0;
  for (const char* kind : {"inactive_file", "active_file"})
    files += stat_field(directory + "memory.stat", std::string(prefix) + kind);
  return GroupMemory{*limit, std::max(0.0, *limit - std::max(0.0, *used - files))};
}

/// The memory of each control group that limits this process: its own groups and their ancestors
/// (version 2 or 1; a line of /proc/self/cgroup is "0::/path" or "number:controllers:/path"). A
/// container may see its group as the root, whatever the line says.
std::vector<GroupMemory> group_memories(const std::string& root) {
  std::vector<GroupMemory> all;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool two = controllers == ",,";
    if (!two && controllers.find(",memory,") == std::string::npos) continue;
    const std::string mount = root + (two ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    for (fs::path path = line.substr(second + 1); !path.empty(); path = path.parent_path()) {
      const std::string directory = mount + path.string() + "/";
      if (const auto group = two ? group_memory(directory, "memory.max", "memory.current", "")
                                 : group_memory(directory, "memory.limit_in_bytes",
                                                "memory.usage_in_bytes", "total_"))
        all.push_back(*group);
      if (path == path.parent_path()) break;
    }
  }
  return all;
}

/// `path` or its closest existing ancestor.
fs::path existing_parent(const std::string& path) {
  std::error_code error;
  fs::path place = fs::absolute(path.empty() ? "." : path, error);
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  return place;
}

}  // namespace

std::vector<int> allowed_cpus(int process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(process, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> one_per_core(const std::vector<int>& cpus) {
  std::set<std::string> seen;
  std::vector<int> cores;
  for (const int cpu : cpus) {
    const std::string siblings =
        first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    if (siblings.empty() || seen.insert(siblings).second) cores.push_back(cpu);
  }
  return cores;
}

std::optional<double> cpu_quota() {
  std::istringstream v2(first_line("/sys/fs/cgroup/cpu.max"));  // "max 100000" or "200000 100000"
  double quota = 0, period = 0;
  if (v2 >> quota >> period && period > 0) return quota / period;
  const auto q = number(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
  const auto p = number(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  if (q && p && *q > 0 && *p > 0) return *q / *p;
  return std::nullopt;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", to_ranges(ranks));
}

std::string to_ranges(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(last == i ? fmt::format("{}", numbers[i])
                              : fmt::format("{}-{}", numbers[i], numbers[last]));
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string cpu_model() {
  return cpuinfo("model name");
}

double load_average() {
  return number(first_line("/proc/loadavg")).value_or(0);
}

std::vector<std::string> cpu_instruction_sets() {
  std::istringstream flags(cpuinfo("flags"));
  const std::set<std::string> known{"avx2", "avx512f", "avx512_bf16", "amx_bf16"};
  std::vector<std::string> sets;
  for (std::string flag; flags >> flag;)
    if (known.contains(flag)) sets.push_back(flag);
  return sets;
}

std::optional<MemoryBytes> memory(const std::string& root) {
  std::map<std::string, std::uint64_t> fields;
  std::ifstream file(root + "/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kib = 0; file >> key >> kib; std::getline(file, unit))
    fields[key] = kib * 1024;
  if (!fields.contains("MemTotal:") || !fields.contains("MemAvailable:")) return std::nullopt;
  MemoryBytes bytes{fields["MemTotal:"], fields["MemAvailable:"]};
  for (const GroupMemory& group : group_memories(root)) {
    if (group.limit >= static_cast<double>(fields["MemTotal:"])) continue;
    bytes.total = std::min(bytes.total, static_cast<std::uint64_t>(group.limit));
    bytes.available = std::min(bytes.available, static_cast<std::uint64_t>(group.left));
  }
  return bytes;
}

std::optional<std::uint64_t> disk_free(const std::string& path) {
  struct statvfs status {};
  if (statvfs(existing_parent(path).c_str(), &status) != 0) return std::nullopt;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

bool writable(const std::string& path) {
  const fs::path place = existing_parent(path);
  return is_folder(place) && access(place.c_str(), W_OK | X_OK) == 0;
}

}  // namespace concertina
