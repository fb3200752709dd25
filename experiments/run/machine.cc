#include "experiments/run/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// The first line of a file of /proc or /sys; empty if it cannot be read.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value behind "key   : value" of the first such line in /proc/cpuinfo.
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

/// Bytes of a control group's file (version 2, else 1); empty where there is no limit.
std::optional<double> group_memory(const char* v2, const char* v1) {
  const auto value = number(first_line(std::string("/sys/fs/cgroup/") + v2));
  return value ? value : number(first_line(std::string("/sys/fs/cgroup/memory/") + v1));
}

/// `path` or the closest directory above it that exists.
fs::path existing_parent(const std::string& path) {
  std::error_code error;
  fs::path place = fs::absolute(path.empty() ? "." : path, error);
  while (!fs::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  return place;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
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

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

std::string cpu_model() {
  return cpuinfo("model name");
}

std::vector<std::string> cpu_instruction_sets() {
  std::istringstream flags(cpuinfo("flags"));
  const std::set<std::string> known{"avx2", "avx512f", "avx512_bf16", "amx_bf16"};
  std::vector<std::string> sets;
  for (std::string flag; flags >> flag;)
    if (known.count(flag) > 0) sets.push_back(flag);
  return sets;
}

std::optional<MemoryBytes> memory() {
  std::map<std::string, std::uint64_t> fields;
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kib = 0; file >> key >> kib; std::getline(file, unit))
    fields[key] = kib * 1024;
  if (fields.count("MemTotal:") == 0 || fields.count("MemAvailable:") == 0) return std::nullopt;
  MemoryBytes bytes{fields["MemTotal:"], fields["MemAvailable:"]};
  const auto limit = group_memory("memory.max", "memory.limit_in_bytes");
  const auto used = group_memory("memory.current", "memory.usage_in_bytes");
  if (limit && used && *limit < static_cast<double>(bytes.total)) {
    const double left = std::max(0.0, *limit - *used);
    bytes.total = static_cast<std::uint64_t>(*limit);
    bytes.available = std::min(bytes.available, static_cast<std::uint64_t>(left));
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
  std::error_code error;
  return fs::is_directory(place, error) && access(place.c_str(), W_OK | X_OK) == 0;
}

}  // namespace concertina
