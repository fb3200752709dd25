// Training that reads earlier outputs of frozen units instead of computing them: the same bits, as
// few units run as possible, and no fault of the cache ends a run.
#include <gtest/gtest.h>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "tests/far_backend.h"
#include "tests/integration/cached_training.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

struct Room {
  std::uint64_t memory = 0, disk = 0;
};

/// Training with room for activations gives the same bits as without.
CachedResult expect_uncached_bits(int ranks, const RunConfig& config, const CachedHost& host,
                                  const Room& room, const Span& span,
                                  const std::vector<LayoutChange>& changes = {},
                                  const MakeBackend& make_backend = cpu_backend) {
  const CachedResult got = train_cached(ranks, with_room(config, host, room.memory, room.disk),
                                        host, span, changes, make_backend);
  EXPECT_EQ(got.outcome, train_cached(ranks, config, host, span, changes).outcome);
  return got;
}

TEST(AutoCache, HasTheBitsOfTrainingWithoutItAtEveryLayout) {
  struct Setting {
    int pp, dp;
    const char* schedule;
    bool overlap = false;
  };
  for (const char* compute : {"fp32", "bf16"}) {
    CachedHost host;
    RunConfig config = cached_config();
    config.numerics.compute = compute;
    config.model.dropout = 0.1;
    const bool emulated = cpu_backend(1)->emulates(find_precision(compute)->storage);
    const auto frontier = [](int ranks, const Setting& one) {
      std::vector<LayoutChange> changes;
      for (const auto& [step, units] : {std::pair{3, 3}, {7, 5}, {10, 7}})
        changes.push_back({step, frozen_at(units, ranks, one.pp, one.dp, one.schedule)});
      for (LayoutChange& change : changes) change.request.overlap = one.overlap;
      return changes;
    };
    const Span span{0, 14, "", ""};
    const CachedResult expected =
        train_cached(1, with_grid(config, 1, 1, "1f1b"), host, span, frontier(1, {1, 1, "1f1b"}));
    for (const Setting& one :
         {Setting{1, 1, "1f1b"}, Setting{2, 1, "1f1b", true}, Setting{1, 2, "gpipe"},
          Setting{2, 2, "zb-h1"}, Setting{2, 1, "zb-v"}, Setting{2, 1, "dualpipe", true}})
      for (const Room& room : {Room{24, 0}, Room{0, 24}, Room{10, 10}}) {
        const int ranks = one.pp * one.dp;
        SCOPED_TRACE(fmt::format("{} pp={} dp={} {} {}+{}", compute, one.pp, one.dp, one.schedule,
                                 room.memory, room.disk));
        const CachedResult got =
            train_cached(ranks,
                         with_room(with_grid(config, one.pp, one.dp, one.schedule), host,
                                   room.memory, room.disk),
                         host, span, frontier(ranks, one));
        EXPECT_EQ(got.outcome, expected.outcome);
        EXPECT_EQ(got.use.memory_hits + got.use.disk_hits > 0, !emulated);
        EXPECT_EQ(got.use.faults, 0U);
      }
  }
}

/// Masks and offsets that are repeated after `views` epochs: when each is used first, all frozen
/// units run.
TEST(AutoCache, ServesMasksAndShiftedWindowsThatComeAgain) {
  CachedHost host;
  constexpr int kEpoch = 2, kViews = 3;  // steps of an epoch
  for (const char* family : {"bert", "gpt"}) {
    SCOPED_TRACE(family);
    RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
    config.model.family = family;
    config.model.vocab = 300;  // with the special tokens
    config.data.options["windows"] = family == std::string("gpt") ? "shifted" : "fixed";
    const Span span{0, 3 * kViews * kEpoch, "", ""};
    const CachedResult other = train_cached(1, config, host, span, {{1, frozen_at(5)}});
    config.data.views = kViews;
    const CachedResult got = expect_uncached_bits(1, config, host, {kViews * kCachedSamples, 0},
                                                  span, {{1, frozen_at(5)}});
    EXPECT_NE(got.outcome, other.outcome);
    EXPECT_GE(got.use.misses, kViews * (kCachedSamples - 2));
    EXPECT_GE(got.use.memory_hits, kViews * (kCachedSamples - 2));
    EXPECT_EQ(got.use.faults, 0U);
  }
}

/// Returns the number of forwards of fully frozen stages that overlap with a backward.
int overlapped_frozen(const RunConfig& config, int ranks) {
  const PlannedJob run = planned(config, ranks);
  int count = 0;
  for (const std::vector<Action>& row : run.plan.rows)
    for (const Action& action : row)
      count += action.overlapped && action.kind == Kind::F &&
               run.layout.stage(action.stage).last_unit <= run.layout.frozen_units;
  return count;
}

/// Rows of a microbatch are divided into tiles, the last of which is shorter, and a sample has
/// different rows each time. Some kernels (such as oneDNN's fp32 products limited to AVX2) add in
/// another order there: then nothing is cached.
TEST(AutoCache, IsOffWhereASampleHasOtherBitsInOtherRows) {
  struct Shape {
    int tokens, batch, microbatches, width;
  };
  std::uint64_t hits = 0;
  for (const char* compute : {"fp32", "bf16"})
    for (const cpu::Isa& isa : cpu::available_isas())
      for (const auto& [tokens, batch, microbatches, width] :
           {Shape{33, 12, 2, 48}, Shape{47, 12, 4, 64}, Shape{70, 8, 4, 20}, Shape{9, 24, 2, 96}}) {
        SCOPED_TRACE(fmt::format("{} {}: {} of {} tokens, width {}", compute, isa.name,
                                 batch / microbatches, tokens, width));
        CachedHost host(static_cast<std::uint64_t>(tokens));
        RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
        config.model = {.layers = 2, .width = width, .heads = 2, .context = tokens, .vocab = 256};
        config.batch = {batch, microbatches};
        config.numerics.compute = compute;
        // An epoch with only the embedding frozen, whose rows are all equal, and two with more.
        const int epoch = static_cast<int>(kCachedSamples) / batch;
        const std::vector<LayoutChange> changes{{1, frozen_at(1)}, {1 + epoch, frozen_at(5)}};
        const Span span{0, 3 * epoch, "", ""};
        const MakeBackend backend = [&](int threads) {
          return make_cpu_backend(threads, isa.name);
        };
        const CachedResult expected = train_cached(1, config, host, span, changes, backend);
        config.cache.memory = {8 << 20};
        const CachedResult got = train_cached(1, config, host, span, changes, backend);
        EXPECT_EQ(got.outcome, expected.outcome);
        hits += got.use.memory_hits;
        if (got.use.memory_hits == 0)
          EXPECT_NE(got.decisions.back()["why"].dump().find("another position"), std::string::npos);
        else
          EXPECT_EQ(got.use.memory_hits, 2 * kCachedSamples);
      }
  EXPECT_GT(hits, 0U);
}

TEST(AutoCache, AForwardOfWhichNothingRunsMayBeOverlapped) {
  CachedHost host;
  RunConfig config = cached_config();
  config.batch = {24, 12};
  config.freeze.units = 5;
  const Span span{0, 4, "", ""};
  const CachedResult expected = train_cached(1, with_grid(config, 1, 1, "1f1b"), host, span);
  for (const char* schedule : {"dualpipe-v", "interleaved-1f1b"}) {
    SCOPED_TRACE(schedule);
    RunConfig overlapped = with_grid(config, 2, 1, schedule);
    overlapped.parallel.overlap = true;
    EXPECT_GT(overlapped_frozen(overlapped, 2), 0);
    const CachedResult got = train_cached(2, with_room(overlapped, host, 24, 0), host, span);
    EXPECT_EQ(got.outcome, expected.outcome);
    EXPECT_EQ(got.use.memory_hits, 3 * kCachedSamples);
  }
}

TEST(AutoCache, EverySampleWithAPlaceIsReadOnceItWasComputed) {
  CachedHost host;
  RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
  config.freeze.units = 3;
  const Span span{0, 8, "", ""};  // 4 epochs
  const CacheUse all = train_cached(1, with_room(config, host, 24, 0), host, span).use;
  EXPECT_EQ(all.misses, kCachedSamples);
  EXPECT_EQ(all.writes, kCachedSamples);
  EXPECT_EQ(all.memory_hits, 3 * kCachedSamples);
  EXPECT_EQ(all.disk_hits + all.moved + all.faults, 0U);
  // A microbatch is read from the cache if all of its samples have a place: here, it is one sample.
  config.batch = {12, 12};
  const CachedResult some = train_cached(1, with_room(config, host, 12, 6), host, span);
  const std::uint64_t memory = some.decisions.at(0)["memory_slots"],
                      disk = some.decisions.at(0)["disk_slots"];
  EXPECT_GE(memory, 12U);  // budgets are whole pages
  EXPECT_GE(disk, 6U);
  EXPECT_LT(memory + disk, kCachedSamples);
  // A slot is free for another sample a step after it was read: here, after half an epoch.
  const std::uint64_t hits = some.use.memory_hits + some.use.disk_hits;
  EXPECT_LE(hits, 3 * (memory + disk));
  EXPECT_GE(hits, 3 * (memory + disk) - 12);
  EXPECT_EQ(some.use.misses, 4 * kCachedSamples - hits);
  EXPECT_GE(some.use.writes, memory + disk);
  EXPECT_EQ(some.use.faults, 0U);
}

TEST(AutoCache, EntriesMoveOnWithTheFrontier) {
  CachedHost host;
  const RunConfig config = with_room(with_grid(cached_config(), 1, 1, "1f1b"), host, 12, 24);
  // Two epochs each; nothing is frozen in the first two.
  const std::vector<LayoutChange> changes{{3, frozen_at(3)}, {7, frozen_at(5)}, {11, frozen_at(7)}};
  const auto until = [&](std::int64_t last) {
    return train_cached(1, config, host, {0, last, "", ""}, changes);
  };
  EXPECT_EQ(until(2).use.writes, 0U);
  const CachedResult first = until(6);
  EXPECT_EQ(first.use.misses, kCachedSamples);
  EXPECT_EQ(first.use.memory_hits + first.use.disk_hits, kCachedSamples);
  const CachedResult moved = until(8);
  EXPECT_EQ(moved.use.misses, kCachedSamples);
  EXPECT_EQ(moved.use.moved, kCachedSamples);
  EXPECT_EQ(moved.use.writes, 2 * kCachedSamples);
  const CachedResult last = until(14);
  EXPECT_EQ(last.use.misses, kCachedSamples);
  EXPECT_EQ(last.use.moved, 2 * kCachedSamples);
  EXPECT_EQ(last.use.writes, 3 * kCachedSamples);
  EXPECT_EQ(last.use.memory_hits + last.use.disk_hits, 5 * kCachedSamples);
  for (int unit = 0; unit < 10; ++unit)  // since the last change
    EXPECT_EQ(last.forward[static_cast<std::size_t>(unit)] > 0, unit >= 5) << unit;
}

TEST(AutoCache, UnitsThatTrainedAgainAreAnotherPrefix) {
  CachedHost host;
  RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
  config.freeze.unfreeze = "loss";  // keeps the optimizer state of frozen units
  const std::vector<LayoutChange> changes{
      {3, frozen_at(3)}, {7, frozen_at(0)}, {9, frozen_at(3)}, {13, frozen_at(5)}};
  const Span span{0, 16, "", ""};
  const CachedResult got = expect_uncached_bits(1, config, host, {24, 0}, span, changes);
  EXPECT_EQ(got.use.misses, 2 * kCachedSamples) << "one epoch each time they are frozen";
  EXPECT_EQ(got.use.moved, kCachedSamples);
}

TEST(AutoCache, LayoutsAndCheckpointsLeaveEveryBit) {
  CachedHost host;
  RunConfig config = cached_config();
  config.freeze.units = 5;
  const Span span{0, 14, "", ""};
  const CachedResult expected = train_cached(1, with_grid(config, 1, 1, "1f1b"), host, span);
  const Layout uneven{{Pipeline{{{3, 0, 4}, {0, 4, 10}}, 0, 2}, Pipeline{{{2, 0, 10}}, 2, 4}}};
  const Request own{.world = 4, .spare = 1, .frozen_units = 5, .layout = uneven};
  const std::vector<LayoutChange> tour{{5, frozen_at(5, 4, 1, 4)},
                                       {7, own},
                                       {10, frozen_at(5, 4, 4, 1)},
                                       {12, frozen_at(5, 4, 2, 1, "zb-v")}};
  for (const Room& room : {Room{24, 0}, Room{8, 16}}) {
    const RunConfig cached =
        with_room(with_grid(config, 2, 2, "1f1b"), host, room.memory, room.disk);
    const CachedResult got = train_cached(4, cached, host, span, tour);
    EXPECT_EQ(got.outcome, expected.outcome);
    EXPECT_GT(got.use.memory_hits + got.use.disk_hits, 4 * kCachedSamples);
  }
  // A resumed launch starts with an empty cache.
  const TemporaryDirectory kept;
  const auto half = [&](int pp, int dp) {
    return with_room(with_grid(config, pp, dp, "1f1b"), host, 24, 0);
  };
  train_cached(2, half(2, 1), host, {0, 7, "", kept.path()});
  const CachedResult resumed = train_cached(2, half(1, 2), host, {7, 14, kept.path(), ""});
  EXPECT_EQ(resumed.outcome, expected.outcome);
  EXPECT_EQ(resumed.use.misses, kCachedSamples + 12) << "plus a step of the resumed epoch";
}

TEST(AutoCache, StepsThatDoSeveralAtOnceReadWhatTheyWouldCompute) {
  CachedHost host;
  RunConfig config = cached_config();
  config.freeze.units = 5;
  const auto grown = [](int batches, Request request) {
    request.batches = batches;
    return request;
  };
  // 1 to 4, 5+6, 7+8, 9+10+11, 12, 13, 14
  const std::vector<LayoutChange> changes{{5, grown(2, frozen_at(5, 2, 1, 2))},
                                          {9, grown(3, frozen_at(5, 2, 2, 1))},
                                          {12, grown(1, frozen_at(5, 2, 1, 2))}};
  const Span span{0, 14, "", ""};
  for (const Room& room : {Room{24, 0}, Room{8, 16}}) {
    const CachedResult got =
        expect_uncached_bits(2, with_grid(config, 2, 1, "1f1b"), host, room, span, changes);
    EXPECT_EQ(got.use.misses, kCachedSamples);
    EXPECT_EQ(got.use.memory_hits + got.use.disk_hits, 6 * kCachedSamples);
  }
}

TEST(AutoCache, TensorsMayBeOutOfReachOfTheHost) {
  CachedHost host;
  const MakeBackend far = [](int threads) { return make_far_backend(make_cpu_backend(threads)); };
  const RunConfig config = cached_config();
  const std::vector<LayoutChange> changes{{3, frozen_at(3, 2, 2, 1)}, {7, frozen_at(7, 2, 2, 1)}};
  const Span span{0, 12, "", ""};
  const CachedResult got =
      expect_uncached_bits(2, with_grid(config, 2, 1, "1f1b"), host, {24, 0}, span, changes, far);
  EXPECT_EQ(got.use.misses, kCachedSamples);
}

TEST(AutoCache, IsUsedWhereItPays) {
  CachedHost host;
  RunConfig config = with_grid(cached_config(), 1, 1, "1f1b");
  config.model.width = 64;
  config.freeze.units = 7;
  config.cache.use = "pays";
  config.cache.memory = {1 << 20};
  const CachedResult got = train_cached(1, config, host, {0, 8, "", ""});
  ASSERT_EQ(got.decisions.size(), 2U);
  EXPECT_EQ(got.decisions[0]["why"], "the time of these units is not known yet");
  EXPECT_GT(got.decisions[1]["forward_us"], got.decisions[1]["read_us"]);
  EXPECT_EQ(got.decisions[1]["on"], true);
  EXPECT_EQ(got.use.misses, kCachedSamples);
  // Only an embedding is frozen, with large samples: copying and hashing take longer than
  // computing.
  config.model.width = 512;
  config.model.layers = 1;
  config.freeze.units = 1;
  config.cache.memory = {8 << 20};
  config.batch = {12, 12};
  const CachedResult slow = train_cached(1, config, host, {0, 8, "", ""});
  ASSERT_EQ(slow.decisions.size(), 2U);
  const bool pays = slow.decisions[1]["forward_us"] > slow.decisions[1]["read_us"];
  EXPECT_EQ(slow.decisions[1]["on"], pays);
  EXPECT_EQ(slow.use.memory_hits, pays ? 3 * kCachedSamples : kCachedSamples);
}

}  // namespace
}  // namespace concertina
