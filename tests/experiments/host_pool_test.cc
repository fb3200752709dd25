// Which hosts answer, at the size of a cluster; a shell replaces mpirun.
#include "experiments/supervise/host_pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace concertina {
namespace {

class Cluster {
 public:
  explicit Cluster(int hosts) {
    for (int h = 0; h < hosts; ++h) hosts_.push_back({fmt::format("n{}", h), 4});
  }
  HostPool pool() {
    return {hosts_, [this](const std::vector<Host>& hosts, const char* /*task*/) {
              return question(hosts);
            }};
  }

  std::set<std::string> dead;
  int launches = 0;

 private:
  /// If a host is lost, every other launch ends without any host's answer, as mpirun may do, and
  /// the rest with the answers of the other hosts.
  ProcessOptions question(const std::vector<Host>& hosts) {
    ++launches;
    std::string text;
    for (const Host& host : hosts)
      if (!dead.contains(host.name)) text += std::string(HostPool::kAnswer) + "\n";
    if (std::ssize(hosts) != std::ranges::count(text, '\n') && launches % 2 == 0) text.clear();
    return {.words = {"printf", "%s", text}};
  }

  std::vector<Host> hosts_;
};

TEST(HostPool, AThousandHostsTakeFewLaunches) {
  Cluster cluster(1000);
  HostPool pool = cluster.pool();
  EXPECT_TRUE(pool.ask().empty());
  EXPECT_LE(cluster.launches, 16);
  EXPECT_EQ(slots_of(pool.for_ranks(4000)), 4000);
}

TEST(HostPool, LostHostsAreFoundAmongAThousand) {
  Cluster cluster(1000);
  HostPool pool = cluster.pool();
  cluster.dead = {"n0", "n511", "n999"};
  EXPECT_EQ(pool.ask(), (std::vector<std::string>{"n0", "n511", "n999"}));
  EXPECT_LE(cluster.launches, 16 + 3 * (8 + 8));
  EXPECT_EQ(slots_of(pool.for_ranks(4000)), 3988);
  EXPECT_EQ(pool.for_ranks(4)[0].name, "n1");
  EXPECT_TRUE(pool.ask().empty()) << "these are known";
  cluster.dead = {"n511"};
  EXPECT_TRUE(pool.ask().empty());
  EXPECT_EQ(slots_of(pool.for_ranks(4000)), 3996) << "two are available again";
}

TEST(HostPool, AllMayBeLost) {
  for (const int hosts : {1, 16, 17, 100}) {
    Cluster cluster(hosts);
    HostPool pool = cluster.pool();
    for (int h = 0; h < hosts; ++h) cluster.dead.insert(fmt::format("n{}", h));
    EXPECT_EQ(std::ssize(pool.ask()), hosts);
    EXPECT_TRUE(pool.for_ranks(1).empty());
  }
}

}  // namespace
}  // namespace concertina
