// Tests what doctor reports, and how many threads each rank gets.
#include "experiments/machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/cuda/device.h"
#include "experiments/doctor/cluster_probe.h"
#include "experiments/machine/threads.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

std::vector<int> cpus(int first, int last) {
  std::vector<int> numbers;
  for (int cpu = first; cpu < last; ++cpu) numbers.push_back(cpu);
  return numbers;
}

RankCores rank_on(const std::string& host, const std::vector<int>& cores, double quota = 0) {
  return {host, cores, cores, quota};
}

TEST(Machine, RangesAreShort) {
  EXPECT_EQ(to_ranges({}), "");
  EXPECT_EQ(to_ranges({3}), "3");
  EXPECT_EQ(to_ranges({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(Machine, ReadsThisMachine) {
  const std::vector<int> allowed = allowed_cpus(), cores = one_per_core(allowed);
  EXPECT_FALSE(allowed.empty());
  EXPECT_FALSE(cores.empty());
  EXPECT_TRUE(std::includes(allowed.begin(), allowed.end(), cores.begin(), cores.end()));
  const auto bytes = memory();
  ASSERT_TRUE(bytes);
  EXPECT_GT(bytes->available, 0U);
  EXPECT_LE(bytes->available, bytes->total);
  EXPECT_TRUE(disk_free("no/such/directory/yet"));
  EXPECT_TRUE(writable(testing::TempDir() + "/not/yet/there"));
  EXPECT_FALSE(writable("/proc/version/none"));  // its parent is a file
}

/// Limits of a batch system or a container count, also those of a parent group of the process's.
TEST(Machine, MemoryIsThatOfTheControlGroup) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto available = [&] { return memory(root)->available; };
  write("/proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1000 kB\nMemAvailable: 6000 kB\n");
  EXPECT_EQ(available(), 6000U * 1024);
  write("/proc/self/cgroup", "9:cpu,memory:/job/step\n0::/user/job\n");
  EXPECT_EQ(available(), 6000U * 1024);
  write("/sys/fs/cgroup/user/memory.max", "3000000\n");
  write("/sys/fs/cgroup/user/memory.current", "1000000\n");
  write("/sys/fs/cgroup/user/memory.stat", "anon 400000\ninactive_file 600000\n");
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  write("/sys/fs/cgroup/user/job/memory.current", "0\n");
  EXPECT_EQ(available(), 2600000U);  // page cache can be reclaimed
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  EXPECT_EQ(available(), 1500000U);
  EXPECT_EQ(memory(root)->total, 2000000U);
}

TEST(Machine, GpusAndTheirStatusAgree) {
  EXPECT_EQ(cuda::device_count() > 0, !cuda::devices().empty());
  EXPECT_FALSE(cuda::status().empty());
}

TEST(Threads, WhatIsAskedForIsGiven) {
  EXPECT_EQ(threads_of(7, {rank_on("a", cpus(0, 2))}, 0), 7);
}

TEST(Threads, RanksShareTheirHost) {
  const std::vector<RankCores> unbound(4, rank_on("a", cpus(0, 16)));
  EXPECT_EQ(threads_of(0, unbound, 0), 4);
  std::vector<RankCores> bound;
  for (int r = 0; r < 4; ++r) bound.push_back(rank_on("a", cpus(4 * r, 4 * r + 4)));
  EXPECT_EQ(threads_of(0, bound, 3), 4);
  const std::vector<RankCores> crowded(4, rank_on("a", cpus(0, 2)));
  EXPECT_EQ(threads_of(0, crowded, 0), 1);
  EXPECT_EQ(shared_cores(crowded, 1), 2);
  EXPECT_EQ(shared_cores(unbound, 1), 0);
  EXPECT_EQ(shared_cores(unbound, 8), 2) << "ranks with more threads";
  const std::vector<RankCores> container(2, rank_on("a", cpus(0, 64), 6));
  EXPECT_EQ(threads_of(0, container, 1), 3);
  const std::vector<RankCores> hosts{rank_on("a", cpus(0, 8)), rank_on("b", cpus(0, 8)),
                                     rank_on("b", cpus(0, 8))};
  EXPECT_EQ(threads_of(0, hosts, 0), 8);
  EXPECT_EQ(threads_of(0, hosts, 2), 4);
}

TEST(Threads, WarnsOfMoreThreadsThanCores) {
  const std::vector<RankCores> ranks(2, rank_on("a", cpus(0, 4)));
  EXPECT_TRUE(thread_warnings(ranks, {2, 2}).empty());
  const auto crowded = thread_warnings(ranks, {4, 4});
  ASSERT_EQ(crowded.size(), 1U);
  EXPECT_NE(crowded[0].text.find("4 cores for 8 threads of 2 ranks"), std::string::npos);
  const auto bound = thread_warnings({rank_on("a", {3})}, {2});
  ASSERT_EQ(bound.size(), 2U);
  EXPECT_NE(bound[0].text.find("bound to CPU 3"), std::string::npos);
  EXPECT_NE(bound[0].text.find("--map-by slot:PE=2"), std::string::npos);
}

TEST(ClusterProbe, EachTwoHostsMeetOnce) {
  for (int hosts = 1; hosts < 20; ++hosts) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < hosts - 1 + hosts % 2; ++round)
      for (int host = 0; host < hosts; ++host)
        if (const auto other = opponent(host, round, hosts)) {
          EXPECT_EQ(opponent(*other, round, hosts), host);
          EXPECT_TRUE(met.emplace(host, *other).second);
        }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(hosts * (hosts - 1)));
  }
}

}  // namespace
}  // namespace concertina
