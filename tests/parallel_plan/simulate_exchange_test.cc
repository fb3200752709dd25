// The simulator's exchanges of gradients between replicas, and the update after them.
#include <gtest/gtest.h>

#include <chrono>

#include "parallel/generate/passes.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// One leaf per holder.
std::vector<Share> one_each(int holders) {
  std::vector<Share> shares;
  for (int h = 0; h < holders; ++h) shares.push_back({{0, {h, h + 1}}});
  return shares;
}

/// Bytes of gradients that stage 0 or 1 of the first pipeline shares with stage 2 of the second.
BucketCosts shared_bucket(int stage, double bytes) {
  return {.ranks = {stage, 2},
          .stages = {stage, 2},
          .early = {0, 0},
          .pieces = one_each(2),
          .updated = {0, 0},
          .bytes = bytes};
}

TEST(Exchange, OverlapsAndStepWaitsForAll) {
  const Layout layout = two_and_one();
  Costs costs = unit_costs(layout);
  costs.local.bandwidth = 1;
  costs.buckets = {shared_bucket(1, 8), shared_bucket(0, 8)};  // 4 bytes in each direction
  costs.ranks.assign(3, {.norm = 0.5, .update = 1.5});
  const Timeline timeline = simulate(make_plan(layout, "1f1b"), layout, costs);
  // Stage 1 (rank 1) ends at 13, stage 0 at 15; rank 2 at 6, but it shares units with both.
  EXPECT_DOUBLE_EQ((timeline.rows[1].end() - 2)->end, 13 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[0].end() - 2)->end, 15 + 4);
  EXPECT_DOUBLE_EQ((timeline.rows[2].end() - 2)->end, 15 + 4);
  // Then 4 bytes of weights in both directions.
  for (const auto& row : timeline.rows) EXPECT_DOUBLE_EQ(row.back().start, 19);
  EXPECT_DOUBLE_EQ(timeline.makespan, 19.5 + 4);
  EXPECT_DOUBLE_EQ(timeline.busy[2], 2 * 3 + 0.5 + 1.5);  // waiting for weights is idle time
}

TEST(Exchange, AmongComputeWaitsForNothing) {
  // Two replicas of two stages on one rank each; stage 1's REDUCE is in the middle of the row, as
  // in PyTorch's files.
  Layout layout = over({0, 0}, 1);
  layout.pipelines.push_back(layout.pipelines[0]);
  layout.pipelines[1].first_microbatch = 1;
  layout.pipelines[1].last_microbatch = 2;
  for (StagePlacement& stage : layout.pipelines[1].stages) stage.rank = 1;
  Costs costs = unit_costs(layout);
  costs.local.bandwidth = 1;
  costs.buckets = {{.ranks = {0, 1},
                    .stages = {1, 3},
                    .early = {0, 0},
                    .pieces = one_each(2),
                    .updated = {0, 0},
                    .bytes = 14}};
  Plan plan = make_plan(layout, "1f1b");
  for (int rank = 0; rank < 2; ++rank)
    plan.rows[rank] = {{Kind::F, 2 * rank, rank},     {Kind::F, 2 * rank + 1, rank},
                       {Kind::B, 2 * rank + 1, rank}, {Kind::REDUCE, 2 * rank + 1, -1},
                       {Kind::B, 2 * rank, rank},     {Kind::STEP, 0, -1}};
  const Timeline timeline = simulate(plan, layout, costs);
  EXPECT_DOUBLE_EQ(timeline.rows[0][4].start, 4);
  EXPECT_DOUBLE_EQ(timeline.rows[0][5].start, 4 + 7);  // STEP waits for what was sent at 4
}

constexpr double kMediumBytes = 4.0 * (51.5e6 + 24 * (4.2e6 + 8.4e6));  // GPT-2 medium

/// Returns the seconds to exchange the gradients of GPT-2 medium (355 million parameters) between
/// replicas of one rank, `per_host` of them on each host, and to gather the weights.
double exchange_seconds(int replicas, int per_host, const LinkCosts& link,
                        const std::string& scheme = "all-to-all") {
  const Layout layout = make_layout({{0, 1}}, {1, replicas}, replicas, replicas);
  Costs costs = unit_costs(layout);
  for (StageCosts& stage : costs.stages) stage = {.forward = 0, .input = 0, .weight = 0};
  costs.remote = link;
  costs.local.bandwidth = 12 * link.bandwidth;
  costs.leaves = replicas;
  costs.exchange_scheme = scheme;
  std::vector<int> all;
  for (int rank = 0; rank < replicas; ++rank) {
    all.push_back(rank);
    costs.hosts.push_back(rank / per_host);
  }
  const std::vector<double> zeros(all.size());
  double sum = 0;
  for (int unit = 0; unit < 49; ++unit) {
    const double parameters = unit == 0 ? 51.5e6 : unit % 2 == 0 ? 8.4e6 : 4.2e6;
    costs.buckets.push_back({.ranks = all,
                             .stages = all,
                             .early = zeros,
                             .pieces = one_each(replicas),
                             .updated = zeros,
                             .bytes = 4 * parameters,
                             .number = unit});
    sum += 4 * parameters;
  }
  EXPECT_DOUBLE_EQ(sum, kMediumBytes);
  return simulate(make_plan(layout, "1f1b"), layout, costs).makespan;
}

/// Returns the same between hosts of one rank, divided by a ring's time.
double over_a_ring(int replicas, const LinkCosts& link, const std::string& scheme) {
  const double ring = 2 * kMediumBytes * (replicas - 1) / replicas / link.bandwidth;
  return exchange_seconds(replicas, 1, link, scheme) / ring;
}

TEST(Exchange, TakesLittleMoreThanARing) {
  for (const std::string scheme : {"all-to-all", "hierarchical"})
    for (const int replicas : {2, 3, 8, 12, 16, 32, 100}) {
      SCOPED_TRACE(fmt::format("{} of {}", scheme, replicas));
      EXPECT_LT(over_a_ring(replicas, {.latency = 5e-6, .bandwidth = 25e9}, scheme), 1.4);
      const double at_once = over_a_ring(replicas, {.bandwidth = 25e9}, scheme);
      EXPECT_LT(at_once, 1.4);
      EXPECT_GE(at_once, 1 - 1e-9);
    }
}

TEST(Exchange, OfAThousandReplicasTakesSeconds) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_LT(over_a_ring(1024, {.latency = 5e-6, .bandwidth = 25e9}, "all-to-all"), 1.4);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Exchange, HostsOfSeveralRanksExchangeOneSumEach) {
  // What each host must send and receive after its ranks have added their gradients.
  const LinkCosts link{.latency = 5e-6, .bandwidth = 25e9};
  for (const auto& [hosts, per_host] : {std::pair(2, 2), {2, 8}, {8, 8}, {16, 4}}) {
    const double bound = 2 * kMediumBytes * (hosts - 1) / hosts / link.bandwidth;
    const double direct = exchange_seconds(hosts * per_host, per_host, link),
                 hierarchical = exchange_seconds(hosts * per_host, per_host, link, "hierarchical");
    EXPECT_GT(direct, 0.99 * per_host * bound) << hosts << " x " << per_host;
    EXPECT_GT(hierarchical, 0.99 * bound) << hosts << " x " << per_host;
    EXPECT_LT(hierarchical, 1.6 * bound) << hosts << " x " << per_host;
  }
}

}  // namespace
}  // namespace concertina
