// What `doctor --cluster` says of facts: each fault by itself, on few hosts and on many.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <ostream>
#include <set>

#include "core/index.h"
#include "experiments/doctor/cluster_judgement.h"

namespace concertina {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Hosts h0, h1, ... of two ranks bound to four of eight cores each.
ClusterFacts healthy(int hosts) {
  ClusterFacts facts{.directory = "/runs", .hosts = {}, .ranks = {}, .links = {}};
  for (int h = 0; h < hosts; ++h) {
    HostFacts host;
    host.name = "h" + std::to_string(h);
    host.processor = "Xeon avx2";
    host.ranks = 2;
    host.usable = 8;
    host.cpus.resize(8);
    std::iota(host.cpus.begin(), host.cpus.end(), 0);
    host.memory = 64 * kGiB + h;
    host.shared_memory = 32 * kGiB;
    host.open_files = 4096;
    host.locked_memory = 8 * kGiB;
    host.infiniband = true;
    host.local = {3e-7, 1e10};
    host.free = 100 * kGiB;
    host.disk.syncs = 300 + h % 7;
    host.disk.written = kGiB;
    for (int r = 0; r < 2; ++r) {
      const std::vector<int> cpus(host.cpus.begin() + 4 * r, host.cpus.begin() + 4 * r + 4);
      const RankCores cores{.host = host.name, .cpus = cpus, .cores = cpus};
      facts.ranks.push_back({h, cores, 4, "build 1", "Open MPI 4", {{"OMP_NUM_THREADS", "4"}}});
    }
    facts.hosts.push_back(host);
  }
  facts.links.assign(at(hosts * hosts), {5e-6, 4e9});
  return facts;
}

void set_link(ClusterFacts& facts, int a, int b, const LinkSpeed& link) {
  const int count = static_cast<int>(facts.hosts.size());
  facts.links[at(a * count + b)] = facts.links[at(b * count + a)] = link;
}

void set_links_of(ClusterFacts& facts, int host, const LinkSpeed& link) {
  for (int peer = 0; peer < static_cast<int>(facts.hosts.size()); ++peer)
    if (peer != host) set_link(facts, host, peer, link);
}

void bind_to(RankFacts& rank, const std::vector<int>& cpus) {
  rank.cores.cpus = rank.cores.cores = cpus;
}

struct Fault {
  std::function<void(ClusterFacts&)> make;
  bool error;
  std::string check, what, bound = {};
  bool of_links() const { return check == "bandwidth" || check == "latency"; }
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.check << ": " << fault.what;
}

/// All of host or rank 2.
const Fault kFaults[] = {
    {[](auto& f) {
       set_links_of(f, 2, {5e-6, 5e8});
     },
     false, "bandwidth", "h2: all its links"},
    {[](auto& f) {
       set_links_of(f, 2, {2e-4, 4e9});
     },
     false, "latency", "h2: all its links"},
    {[](auto& f) {
       set_link(f, 1, 2, {5e-6, 5e8});
     },
     false, "bandwidth", "h1-h2: 5 µs, "},
    {[](auto& f) {
       set_link(f, 1, 2, {2e-4, 4e9});
     },
     false, "latency", "h1-h2: 200 µs, "},
    {[](auto& f) { f.hosts[2].looped = kGiB; }, false, "transport", "h2: 0.3 µs, "},
    {[](auto& f) {
       f.hosts[2].looped = kGiB;
       for (RankFacts& rank : f.ranks) rank.environment["OMPI_MCA_btl"] = "tcp,self";
     },
     false, "transport", "with OMPI_MCA_btl=tcp,self"},
    {[](auto& f) { f.hosts[2].ahead = -0.8; }, false, "clock", "h2: -0.80 s"},
    {[](auto& f) { f.hosts[2].seen = false; }, true, "run.dir", "h2: does not see /runs"},
    {[](auto& f) { f.hosts[2].excluded = false; }, true, "locks", "h2: a lock"},
    {[](auto& f) { f.hosts[2].locks = false; }, false, "locks", "h2: locks are refused"},
    {[](auto& f) { f.hosts[2].refusal = "No space", f.hosts[2].free = 1; }, true, "disk",
     "h2: No space"},
    {[](auto& f) { f.hosts[2].free = kGiB / 2; }, false, "disk", "h2: 512 MiB are free"},
    {[](auto& f) { f.hosts[2].reserves = false; }, false, "reserve", "h2: "},
    {[](auto& f) { f.hosts[2].disk.syncs = 40; }, false, "disk speed", "h2: 40 fsyncs/s"},
    {[](auto& f) { f.hosts[2].disk.written = kGiB / 1024; }, false, "disk speed", "h2: "},
    {[](auto& f) { f.hosts[2].shared_memory = kGiB / 16; }, false, "/dev/shm",
     "h2: 64 MiB are free"},
    {[](auto& f) { f.hosts[2].open_files = 100; }, true, "limits", "h2: 100 open files"},
    {[](auto& f) { f.hosts[2].locked_memory = 65536; }, false, "limits", "h2: 64 KiB of locked"},
    {[](auto& f) { f.hosts[2].busy = 2; }, false, "load", "h2: others use 2.0 of 8 CPUs"},
    {[](auto& f) { f.hosts[2].memory = 32 * kGiB; }, false, "memory",
     "h2: 32 GiB, the median is 64 GiB"},
    {[](auto& f) { f.hosts[2].processor = "EPYC avx512f"; }, false, "processor",
     "2 ranks on h2: EPYC avx512f", "Xeon avx2"},
    {[](auto& f) {
       for (int r : {4, 5}) bind_to(f.ranks[at(r)], {0, 1, 2, 3});
     },
     false, "binding", "h2: ranks 4-5 on CPU 0-3 of 0-7"},
    {[](auto& f) {
       for (int r : {4, 5}) bind_to(f.ranks[at(r)], f.hosts[2].cpus);
     },
     false, "binding", "2 ranks on h2: not bound", "bound"},
    {[](auto& f) {
       bind_to(f.ranks[4], {0, 1}), bind_to(f.ranks[5], {4, 5});
       f.ranks[4].threads = f.ranks[5].threads = 2;
     },
     false, "cores", "2 ranks on h2: 4 cores", "8 cores"},
    {[](auto& f) { f.ranks[4].program = "build 2"; }, true, "program", "1 rank on h2: build 2",
     "build 1"},
    {[](auto& f) { f.ranks[4].mpi = "MPICH"; }, true, "mpi", "1 rank on h2: MPICH", "Open MPI 4"},
    {[](auto& f) { f.ranks[4].environment.clear(); }, false, "environment",
     "OMP_NUM_THREADS of 1 rank on h2: not set", "4"},
    {[](auto& f) { f.ranks[4].environment["CONCERTINA__LR__KIND"] = "x"; }, true, "environment",
     "CONCERTINA__LR__KIND of 1 rank on h2: x", "not set"},
};

class ClusterFault : public testing::TestWithParam<Fault> {};

TEST_P(ClusterFault, IsNamedAndNothingElse) {
  for (const int hosts : {3, 4, 7, 1000}) {
    ClusterFacts facts = healthy(hosts);
    for (HostFacts& host : facts.hosts) host.open_files = 1e6;
    if (hosts == 1000 && !GetParam().of_links()) facts.links.clear();  // takes a second
    GetParam().make(facts);
    const std::vector<Finding> found = judge(facts);
    ASSERT_EQ(found.size(), 1U) << hosts << " hosts: " << nlohmann::json(found).dump(1);
    EXPECT_EQ(found[0].error, GetParam().error);
    EXPECT_EQ(found[0].check, GetParam().check);
    EXPECT_NE(found[0].what.find(GetParam().what), std::string::npos) << found[0].what;
    EXPECT_NE(found[0].bound.find(GetParam().bound), std::string::npos) << found[0].bound;
    EXPECT_LT(found[0].what.size(), 400U);
    EXPECT_FALSE(found[0].remedy.empty());
  }
}
INSTANTIATE_TEST_SUITE_P(All, ClusterFault, testing::ValuesIn(kFaults));

TEST(ClusterJudgement, AHealthyClusterHasNoFindings) {
  for (const int hosts : {1, 2, 3, 8, 1000}) {
    ClusterFacts facts = healthy(hosts);
    for (HostFacts& host : facts.hosts) host.open_files = 1e6;
    EXPECT_TRUE(judge(facts).empty()) << hosts << nlohmann::json(judge(facts)).dump(1);
  }
}

TEST(ClusterJudgement, RanksThatShareAllCpusEvenlyAreNotSaidToShareThem) {
  ClusterFacts facts = healthy(3);
  for (RankFacts& rank : facts.ranks) bind_to(rank, facts.hosts[0].cpus);
  EXPECT_TRUE(judge(facts).empty()) << "none is bound";
  for (RankFacts& rank : facts.ranks) rank.threads = 8;
  const std::vector<Finding> found = judge(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].check, "threads");
}

TEST(ClusterJudgement, ManyHostsAreOneFindingWithTheFirstFew) {
  ClusterFacts facts = healthy(8);
  for (HostFacts& host : facts.hosts) host.ahead = &host == &facts.hosts[0] ? 0 : 9;
  const std::vector<Finding> found = judge(facts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].what.starts_with("h1: +9.00 s; ")) << found[0].what;
  EXPECT_TRUE(found[0].what.ends_with("; and 3 more")) << found[0].what;
}

TEST(ClusterJudgement, ErrorsComeFirst) {
  ClusterFacts facts = healthy(3);
  facts.hosts[1].ahead = 9;
  facts.ranks[3].mpi = "MPICH";
  const std::vector<Finding> found = judge(facts);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].error);
}

TEST(ClusterJudgement, EachTwoHostsMeetOnce) {
  for (int hosts = 1; hosts < 20; ++hosts) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < hosts - 1 + hosts % 2; ++round)
      for (int host = 0; host < hosts; ++host)
        if (const auto other = opponent(host, round, hosts)) {
          EXPECT_EQ(opponent(*other, round, hosts), host);
          EXPECT_TRUE(met.emplace(host, *other).second);
        }
    EXPECT_EQ(met.size(), at(hosts * (hosts - 1)));
  }
}

}  // namespace
}  // namespace concertina
