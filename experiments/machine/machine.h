// The share of the machine that this process may use: cores, memory, disk.
// Invariant: reads the system, changes nothing; what cannot be read is empty, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// Logical CPUs that the scheduler may run this process on (mpirun's binding, taskset, cpuset), or
/// another one.
std::vector<int> allowed_cpus(int process = 0);
/// The first of each set of `cpus` that are hardware threads of one core.
std::vector<int> one_per_core(const std::vector<int>& cpus);
/// CPUs' worth of time that the control group grants, as a container's `--cpus` sets it.
std::optional<double> cpu_quota();
/// "0-3,8" from {0, 1, 2, 3, 8}; ascending.
std::string to_ranges(const std::vector<int>& numbers);
/// "rank 3", "ranks 0-3,8".
std::string ranks_text(const std::vector<int>& ranks);

std::string cpu_model();
/// Processes of the host that want to run, mean of a minute; 0 where that is not known.
double load_average();
/// The instruction sets of this processor that the kernels know: avx2, avx512f, avx512_bf16,
/// amx_bf16.
std::vector<std::string> cpu_instruction_sets();

struct MemoryBytes {
  std::uint64_t total = 0, available = 0;
  std::string name = "this machine";
};
/// The memory of the machine, or of a control group that bounds this process where that is less.
/// `root`: where /proc and /sys are.
std::optional<MemoryBytes> memory(const std::string& root = "");

/// Free bytes on the file system that holds `path`, or will once it is made.
std::optional<std::uint64_t> disk_free(const std::string& path);
/// Whether files can be made in `path`, or in the directory that it would be made in.
bool writable(const std::string& path);

}  // namespace concertina
