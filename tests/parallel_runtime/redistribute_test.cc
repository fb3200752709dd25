// Changes of the assignment: from any layout to any other, each byte that must move is sent once,
// memory stays within the plan, and every bit arrives.
#include "parallel/runtime/redistribute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/parallel_runtime/layouts.h"
#include "tests/parallel_runtime/test_rank.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kUnits = 7, kMicrobatches = 8, kLeaves = 4;
constexpr std::size_t kKinds = 2;

/// Buckets of several blocks, so that parts are cut within them; the first and the last unit share
/// a larger one.
Job job() {
  return tied_job(kUnits, 9000, 30000, kMicrobatches, kLeaves);
}

/// Returns any layout on any ranks of the world, with the others spare, and any frozen prefix.
Assignment random_assignment(const Job& job, int world, std::mt19937& random) {
  std::vector<NamedLayout> layouts = all_layouts(kUnits, kMicrobatches, kLeaves);
  std::erase_if(layouts, [&](const NamedLayout& one) { return one.world > world; });
  Layout layout = layouts[random() % layouts.size()].layout;
  std::vector<int> ranks(static_cast<std::size_t>(world));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::shuffle(ranks, random);
  for (Pipeline& pipeline : layout.pipelines)
    for (StagePlacement& stage : pipeline.stages) stage.rank = ranks[stage.rank];
  layout.frozen_units = random() % 2 == 0 ? 0 : static_cast<int>(random() % kUnits);
  return make_assignment(job, std::move(layout), {}, world);
}

bool trains(const Assignment& assignment, std::size_t bucket) {
  return !assignment.buckets[bucket].frozen;
}

/// Returns what each rank lacks, counted element by element, unlike in plan_moves().
std::size_t least_bytes(const Assignment& from, const Assignment& to) {
  std::size_t bytes = 0;
  for (std::size_t b = 0; b < from.buckets.size(); ++b)
    for (int rank = 0; rank < from.world; ++rank) {
      if (to.owners[b].index_of(rank) >= 0 && from.owners[b].index_of(rank) < 0)
        bytes += from.buckets[b].elements * sizeof(float);
      const Part *before = own_state(from, b, rank), *after = own_state(to, b, rank);
      if (after == nullptr || !trains(from, b)) continue;
      for (std::size_t e = after->begin; e < after->end; ++e)
        if (before == nullptr || e < before->begin || e >= before->end)
          bytes += kKinds * sizeof(float);
    }
  return bytes;
}

/// Every element that a rank needs and lacks arrives once, from a rank that has it.
void expect_complete(const Assignment& from, const Assignment& to, const MovePlan& plan,
                     const std::vector<int>& hosts) {
  std::set<std::tuple<std::size_t, bool, std::size_t, int>> arrived;
  for (const MoveRound& round : plan.rounds)
    for (const Move& move : round.moves) {
      ASSERT_GE(from.owners[move.bucket].index_of(move.from), 0);
      if (move.kinds) {
        const Part* source = own_state(from, move.bucket, move.from);
        ASSERT_TRUE(source != nullptr && source->begin <= move.begin && move.end <= source->end);
      } else if (hosts[move.from] != hosts[move.to]) {
        for (const int holder : from.owners[move.bucket].ranks)
          EXPECT_NE(hosts[holder], hosts[move.to]) << "a nearer rank has it";
      }
      for (std::size_t e = move.begin; e < move.end; ++e)
        ASSERT_TRUE(arrived.insert({move.bucket, move.kinds, e, move.to}).second) << "twice";
    }
  EXPECT_EQ(plan.bytes(kKinds), least_bytes(from, to));
}

TEST(Moves, BringEachRankWhatItLacksOnceAndFromNearby) {
  const Job job = concertina::job();
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Assignment from = random_assignment(job, 5, random),
                     to = random_assignment(job, 5, random);
    const std::vector<int> hosts{0, 0, 1, 1, 2};
    expect_complete(from, to, plan_moves(from, to, kKinds, hosts), hosts);
  }
}

TEST(Moves, OfNothingAreNone) {
  const Job job = concertina::job();
  std::mt19937 random(6);
  for (int round = 0; round < 20; ++round) {
    const Assignment same = random_assignment(job, 4, random);
    const MovePlan plan = plan_moves(same, same, kKinds);
    EXPECT_TRUE(plan.rounds.empty());
    EXPECT_EQ(plan.extra_bytes, std::vector<std::size_t>(4, 0));
  }
}

TEST(Moves, KeepTheExtraMemoryWithinTheBudgetOrOneBucket) {
  const Job job = tied_job(60, 4096, 64, kMicrobatches, kLeaves);
  const std::size_t bucket = block_bytes(4096, 1 + kKinds);
  const auto pipeline = [&](std::vector<int> ranks) {
    return make_assignment(job, Layout{{pipeline_over(ranks, 60, 0, kMicrobatches)}}, {}, 4);
  };
  std::vector<int> ranks{0, 1, 2, 3};
  const Assignment from = pipeline(ranks);
  while (std::ranges::next_permutation(ranks).found) {
    for (const std::size_t buckets : {1, 4, 100}) {
      const MovePlan plan = plan_moves(from, pipeline(ranks), kKinds, {}, buckets * bucket);
      for (const std::size_t extra : plan.extra_bytes) EXPECT_LE(extra, buckets * bucket);
      if (buckets == 100) {
        EXPECT_EQ(plan.rounds.size(), 1U) << "everything fits at once";
      }
    }
    // The default is a quarter of the state.
    for (const std::size_t extra : plan_moves(from, pipeline(ranks), kKinds).extra_bytes)
      EXPECT_LE(extra, state_bytes(from, 0, kKinds).total() / 4);
  }
}

/// Returns the larger of the bytes sent and received, of the rank with the most.
std::size_t busiest(const std::vector<MoveRound>& rounds) {
  std::map<int, std::array<std::size_t, 2>> ranks;
  for (const MoveRound& round : rounds)
    for (const Move& move : round.moves) {
      if (move.from == move.to) continue;
      const std::size_t bytes = move.count() * sizeof(float) * (move.kinds ? kKinds : 1);
      ranks[move.from][0] += bytes;
      ranks[move.to][1] += bytes;
    }
  std::size_t most = 0;
  for (const auto& [rank, bytes] : ranks) most = std::max({most, bytes[0], bytes[1]});
  return most;
}

TEST(Moves, SendBothWaysInEachRound) {
  constexpr int kHalves = 14;  // of blocks; the second half has twice the weights of the first
  Job job = tied_job(kHalves, 4096, 64, kMicrobatches, kLeaves);
  for (std::size_t u = 2; u < kHalves; u += 2) job.model.units[u].parameters[0].shape = {8192};
  const Assignment pipeline =
      make_assignment(job, Layout{{pipeline_over({0, 1}, kHalves, 0, kMicrobatches)}}, {}, 2);
  const Assignment replicas =
      make_assignment(job,
                      Layout{{pipeline_over({0}, kHalves, 0, kMicrobatches / 2),
                              pipeline_over({1}, kHalves, kMicrobatches / 2, kMicrobatches)}},
                      {}, 2);
  for (const auto& [from, to] :
       {std::pair(&pipeline, &replicas), std::pair(&replicas, &pipeline)}) {
    const MovePlan plan = plan_moves(*from, *to, kKinds);
    ASSERT_GT(plan.rounds.size(), 1U);
    std::size_t sum = 0;
    for (const MoveRound& round : plan.rounds) sum += busiest({round});
    EXPECT_LE(static_cast<double>(sum), 1.05 * static_cast<double>(busiest(plan.rounds)));
  }
}

float value_of(std::size_t bucket, std::size_t element, int kind) {
  return static_cast<float>(bucket * 100000 + element) + 0.25F * static_cast<float>(kind + 1);
}

/// Writes value_of() to all elements.
void fill(State& state) {
  for (std::size_t b = 0; b < state.weights().size(); ++b) {
    const View weights = state.weights()[b];
    for (std::size_t e = 0; e < weights.count; ++e) weights.f32()[e] = value_of(b, e, -1);
    const Part* part = own_state(state.assignment(), b, state.rank());
    for (std::size_t k = 0; part != nullptr && k < kKinds; ++k)
      for (std::size_t e = 0; e < part->count(); ++e)
        state.part(b, k).f32()[e] = value_of(b, part->begin + e, static_cast<int>(k));
  }
}

/// `kept`: by bucket, whether its optimizer state has been there since fill().
void expect_filled(const State& state, const std::vector<bool>& kept) {
  for (std::size_t b = 0; b < state.weights().size(); ++b) {
    const View weights = state.weights()[b];
    ASSERT_EQ(weights.empty(), state.assignment().owners[b].index_of(state.rank()) < 0);
    for (std::size_t e = 0; e < weights.count; ++e)
      ASSERT_EQ(weights.f32()[e], value_of(b, e, -1)) << "weight " << e << " of bucket " << b;
    const Part* part = own_state(state.assignment(), b, state.rank());
    for (std::size_t k = 0; k < kKinds; ++k) {
      const View own = state.part(b, k);
      ASSERT_EQ(own.count, part == nullptr ? 0 : part->count());
      for (std::size_t e = 0; e < own.count; ++e)
        ASSERT_EQ(own.f32()[e], kept[b] ? value_of(b, part->begin + e, static_cast<int>(k)) : 0.0F);
    }
  }
}

TEST(Redistribute, KeepsEveryBitThroughChainsOfChangesInThePlannedMemory) {
  constexpr int kWorld = 4, kChains = 20, kChanges = 10;
  const Job job = concertina::job();
  for (int chain = 0; chain < kChains; ++chain) {
    SCOPED_TRACE(chain);
    std::mt19937 random(static_cast<unsigned>(chain));
    std::vector<Assignment> stops;
    for (int i = 0; i <= kChanges; ++i) stops.push_back(random_assignment(job, kWorld, random));
    run_threads(kWorld, [&](Communicator& world) {
      const auto rank = static_cast<std::size_t>(world.rank());
      State state(stops[0], world.rank(), {"m", "v"}, host_memory());
      fill(state);
      std::vector<bool> kept(stops[0].buckets.size(), true);
      for (int i = 1; i <= kChanges; ++i) {
        const Assignment &from = stops[i - 1], &to = stops[i];
        for (std::size_t b = 0; b < kept.size(); ++b)
          kept[b] = kept[b] && trains(from, b) && trains(to, b);
        const MovePlan plan = plan_moves(from, to, kKinds);
        EXPECT_EQ(state.bytes(), state_bytes(from, world.rank(), kKinds).total());
        state.restart_peak();
        redistribute(state, to, plan, world);
        EXPECT_EQ(state.bytes(), state_bytes(to, world.rank(), kKinds).total());
        EXPECT_EQ(state.peak(), plan.peak_bytes[rank]);
        ASSERT_NO_FATAL_FAILURE(expect_filled(state, kept));
      }
    });
  }
}

}  // namespace
}  // namespace concertina
