// The share of the machine that this process may use: cores, memory, disk. Invariant: reads the
// system and changes nothing; values that cannot be read are empty, never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// The logical CPUs on which the scheduler may run `process` (0: this one), as limited by mpirun's
/// binding, taskset or cpusets.
std::vector<int> allowed_cpus(int process = 0);
/// The first of each set of `cpus` that are hardware threads of the same core.
std::vector<int> one_per_core(const std::vector<int>& cpus);
/// The CPU time that the control group grants, in CPUs, as set by a container's `--cpus`.
std::optional<double> cpu_quota();
/// Returns "0-3,8" for {0, 1, 2, 3, 8}; `numbers` must be in ascending order.
std::string to_ranges(const std::vector<int>& numbers);
/// Returns "rank 3" or "ranks 0-3,8".
std::string ranks_text(const std::vector<int>& ranks);

std::string cpu_model();
/// The number of runnable processes on the host, averaged over the last minute; 0 if unknown.
double load_average();
/// The instruction sets of this processor that kernels use: avx2, avx512f, avx512_bf16, amx_bf16.
std::vector<std::string> cpu_instruction_sets();

struct MemoryBytes {
  std::uint64_t total = 0, available = 0;
  std::string name = "this machine";
};
/// The memory of the machine, or of a control group that limits this process to less. `root`: the
/// directory that contains /proc and /sys.
std::optional<MemoryBytes> memory(const std::string& root = "");

/// Free bytes on the file system of `path`, which need not exist yet.
std::optional<std::uint64_t> disk_free(const std::string& path);
/// Whether files can be created in `path`, or in the directory in which it would be created.
bool writable(const std::string& path);

}  // namespace concertina
