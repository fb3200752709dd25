// The cache of a host: hits are exactly as a model of it predicts, budgets hold, nothing is left.
#include "io/activation_cache.h"

#include <map>
#include <thread>

#include "tests/io/cache_fixture.h"

namespace concertina {
namespace {

TEST(ActivationCache, SamplesHaveTheirPlaces) {
  CacheHost host;
  const ActivationCache cache(host.options(100, kCacheEntry, kCacheBudget, kCacheBudget));
  EXPECT_EQ(cache.slots(CachePlace::memory), kCacheSlots);
  EXPECT_EQ(cache.slots(CachePlace::disk), kCacheSlots);
  EXPECT_EQ(cache.slots(CachePlace::nowhere), 100 - 2 * kCacheSlots);
  for (std::uint64_t s = 0; s < 120; ++s)
    EXPECT_EQ(cache.place(s), s < kCacheSlots       ? CachePlace::memory
                              : s < 2 * kCacheSlots ? CachePlace::disk
                                                    : CachePlace::nowhere);
  // A tier takes the size of the data set, not its whole budget.
  CacheHost small;
  const ActivationCache all(small.options(40, kCacheEntry, kCacheBudget, kCacheBudget));
  EXPECT_EQ(all.slots(CachePlace::disk), 40 - kCacheSlots);
  EXPECT_EQ(all.slots(CachePlace::nowhere), 0U);
}

/// Random reads, writes and prefetches by two openers, with digests that change back and forth.
TEST(ActivationCache, HitsAreThoseOfASlotPerSample) {
  for (const auto& [memory, disk] : {std::pair{kCacheBudget, kCacheBudget},
                                     {kCacheBudget, 0UL},
                                     {0UL, kCacheBudget},
                                     {0UL, 0UL}}) {
    CacheHost host;
    const CacheOptions options = host.options(100, kCacheEntry, memory, disk);
    ActivationCache leader(options);
    ActivationCache other(options, leader.shared());
    EXPECT_EQ(leader.slots(CachePlace::nowhere), other.slots(CachePlace::nowhere));
    std::map<std::uint64_t, CacheKey> held;
    CacheCounts expected;
    Random random(7);
    for (int i = 0; i < 4000; ++i) {
      ActivationCache& cache = i % 2 == 0 ? leader : other;
      const CacheKey key = key_of(static_cast<std::uint64_t>(draw(random, 0, 99)),
                                  static_cast<int>(draw(random, 0, 2)),
                                  static_cast<std::uint64_t>(draw(random, 0, 1)));
      const bool has_slot = cache.place(key.slot) != CachePlace::nowhere;
      if (draw(random, 0, 1) == 0) {
        ASSERT_EQ(store(cache, key, kCacheEntry), has_slot);
        if (has_slot) held[key.slot] = key, ++expected.writes;
      } else {
        if (i % 3 == 0) cache.prefetch(std::array{key.slot});
        const bool hit = held.contains(key.slot) && held[key.slot] == key;
        ASSERT_EQ(hits(cache, key, kCacheEntry), hit);
        ++(!hit                                          ? expected.misses
           : cache.place(key.slot) == CachePlace::memory ? expected.memory_hits
                                                         : expected.disk_hits);
      }
    }
    const CacheCounts one = leader.counts(), two = other.counts();
    EXPECT_EQ(one.memory_hits + two.memory_hits, expected.memory_hits);
    EXPECT_EQ(one.disk_hits + two.disk_hits, expected.disk_hits);
    EXPECT_EQ(one.misses + two.misses, expected.misses);
    EXPECT_EQ(one.writes + two.writes, expected.writes);
    EXPECT_EQ(one.faults + two.faults, 0U);
    EXPECT_TRUE(host.warnings.empty());
  }
}

TEST(ActivationCache, ProcessesShareItWhileTheyLive) {
  CacheHost host;
  const CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  ActivationCache mine(options);
  Child other([&] {
    ActivationCache theirs(options, mine.shared());
    for (std::uint64_t s = 0; s < 60; s += 2) store(theirs, key_of(s), kCacheEntry);
  });
  ASSERT_EQ(other.wait(), 0);
  EXPECT_TRUE(host.empty());
  for (std::uint64_t s = 0; s < 60; ++s) EXPECT_EQ(hits(mine, key_of(s), kCacheEntry), s % 2 == 0);
  // Threads of one process use separate samples.
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&mine, t] {
      for (int round = 0; round < 20; ++round)
        for (std::uint64_t s = t; s < 60; s += 4) {
          store(mine, key_of(s, round % 3), kCacheEntry);
          EXPECT_TRUE(hits(mine, key_of(s, round % 3), kCacheEntry));
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(host.warnings.empty());
}

TEST(ActivationCache, FilesNeverExceedTheirBudgets) {
  Random random(5);
  for (int i = 0; i < 30; ++i) {
    CacheHost host;
    const auto memory = static_cast<std::uint64_t>(draw(random, 0, 300'000)),
               disk = static_cast<std::uint64_t>(draw(random, 0, 300'000)),
               bytes = static_cast<std::uint64_t>(draw(random, 1, 5000));
    ActivationCache cache(host.options(200, bytes, memory, disk));
    for (std::uint64_t s = 0; s < 200; ++s) store(cache, key_of(s), bytes);
    for (const nlohmann::json& tier : cache.shared()) {
      if (tier.is_null()) continue;
      const std::uint64_t budget = tier["directory"] == host.memory.path() ? memory : disk;
      const std::string path = tier["file"];
      struct stat status {};
      ASSERT_EQ(::stat(path.c_str(), &status), 0);
      EXPECT_LE(static_cast<std::uint64_t>(status.st_size), budget);
      EXPECT_LE((static_cast<std::uint64_t>(status.st_size) + 4095) / 4096 * 4096, budget);
      EXPECT_GE(status.st_blocks * 512, status.st_size) << "not reserved";
    }
    for (std::uint64_t s = 0; s < 200; ++s)
      ASSERT_EQ(hits(cache, key_of(s), bytes), cache.place(s) != CachePlace::nowhere);
  }
}

TEST(ActivationCache, OthersKeepWhatALeaderMadeThatWasKilled) {
  CacheHost host;
  const CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  const std::string told = host.disk.path() + "/told";
  Child leader([&] {
    const ActivationCache cache(options);
    spill(told + ".part", cache.shared().dump());
    std::filesystem::rename(told + ".part", told);
    for (;;) ::pause();
  });
  while (!std::filesystem::exists(told)) std::this_thread::yield();
  const nlohmann::json shared = nlohmann::json::parse(slurp(told));
  ActivationCache mine(options, shared);
  leader.kill();
  std::filesystem::remove(told);
  for (std::uint64_t s = 0; s < 60; ++s) ASSERT_TRUE(store(mine, key_of(s), kCacheEntry));
  for (std::uint64_t s = 0; s < 60; ++s) ASSERT_TRUE(hits(mine, key_of(s), kCacheEntry));
  EXPECT_TRUE(host.empty() && host.warnings.empty());
  ActivationCache late(options, shared);
  EXPECT_EQ(late.slots(CachePlace::memory) + late.slots(CachePlace::disk), 0U);
  host.expect_warning("cannot open a cache file");
}

TEST(PrefixDigest, EachPartCounts) {
  const std::vector<std::string> tensors{"a", "bc"};
  const Sha256Digest digest = prefix_digest("model", "numerics", tensors);
  EXPECT_EQ(prefix_digest("model", "numerics", tensors), digest);
  EXPECT_NE(prefix_digest("modeln", "umerics", tensors), digest);
  EXPECT_NE(prefix_digest("model", "numerics", std::vector<std::string>{"ab", "c"}), digest);
  EXPECT_NE(prefix_digest("model", "numerics", std::vector<std::string>{"bc", "a"}), digest);
  EXPECT_NE(prefix_digest("model", "numerics", std::vector<std::string>{"a", "bc", ""}), digest);
  EXPECT_NE(prefix_digest("model", "numerics", std::vector<std::string>{"a"}), digest);
}

TEST(CacheCost, AReadPaysIfItIsFasterThanComputing) {
  EXPECT_TRUE(cache_pays(1 << 20, 1e-3, 0.01).pays);
  EXPECT_FALSE(cache_pays(1 << 20, 1e-3, 0.001).pays);
  expect_has(cache_pays(1'024'000, 1e-3, 0.01).reason,
             "reading 1000.0 KiB takes 1 ms, recomputing it 10 ms: 10%");
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(cache_pays(1000, 1e-6, bad).pays || cache_pays(1000, bad, 1).pays) << bad;
}

TEST(CacheCost, AReadIsMeasuredAndLeavesNoEntry) {
  CacheHost host;
  ActivationCache cache(host.options(200, 256 << 10, 16 << 20, 16 << 20));
  EXPECT_GT(cache.measure_read(), 0);
  for (std::uint64_t s = 0; s < 200; ++s)
    EXPECT_FALSE(hits(cache, {s, 0, prefix_digest("measurement", "", {})}, 256 << 10));
  EXPECT_EQ(cache.counts().faults, 0U);
}

}  // namespace
}  // namespace concertina
