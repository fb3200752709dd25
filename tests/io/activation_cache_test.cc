// The cache of a host: hits are exactly what a model of it predicts, budgets hold, nothing stays.
#include "io/activation_cache.h"

#include <map>
#include <thread>

#include "tests/io/cache_fixture.h"

namespace concertina {
namespace {

TEST(ActivationCache, SamplesHaveTheirPlaces) {
  CacheHost host;
  const ActivationCache cache(host.options(100, kCacheEntry, kCacheBudget, kCacheBudget), true);
  EXPECT_EQ(cache.slots(CachePlace::memory), kCacheSlots);
  EXPECT_EQ(cache.slots(CachePlace::disk), kCacheSlots);
  EXPECT_EQ(cache.slots(CachePlace::nowhere), 100 - 2 * kCacheSlots);
  for (std::uint64_t s = 0; s < 120; ++s)
    EXPECT_EQ(cache.place(s), s < kCacheSlots       ? CachePlace::memory
                              : s < 2 * kCacheSlots ? CachePlace::disk
                                                    : CachePlace::nowhere);
  // A tier takes what the data set has, not its budget.
  CacheHost small;
  const ActivationCache all(small.options(40, kCacheEntry, kCacheBudget, kCacheBudget), true);
  EXPECT_EQ(all.slots(CachePlace::disk), 40 - kCacheSlots);
  EXPECT_EQ(all.slots(CachePlace::nowhere), 0U);
}

/// Random reads, writes and prefetches, by two openers, with digests that move on and back.
TEST(ActivationCache, HitsAreThoseOfASlotPerSample) {
  for (const auto& [memory, disk] : {std::pair{kCacheBudget, kCacheBudget},
                                     {kCacheBudget, 0UL},
                                     {0UL, kCacheBudget},
                                     {0UL, 0UL}}) {
    CacheHost host;
    const CacheOptions options = host.options(100, kCacheEntry, memory, disk);
    ActivationCache leader(options, true);
    ActivationCache other(options, false);
    leader.hide();
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
        ++(!hit                                            ? expected.misses
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
  ActivationCache mine(options, true);
  Child other([&] {
    ActivationCache theirs(options, false);
    for (std::uint64_t s = 0; s < 60; s += 2) store(theirs, key_of(s), kCacheEntry);
  });
  ASSERT_EQ(other.wait(), 0);
  EXPECT_EQ(host.files().size(), 2U) << "only the leader hides them";
  mine.hide();
  EXPECT_TRUE(host.files().empty());
  for (std::uint64_t s = 0; s < 60; ++s) EXPECT_EQ(hits(mine, key_of(s), kCacheEntry), s % 2 == 0);
  // Threads of one process, on samples of their own.
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
    ActivationCache cache(host.options(200, bytes, memory, disk), true);
    for (std::uint64_t s = 0; s < 200; ++s) store(cache, key_of(s), bytes);
    for (const std::string& path : host.files()) {
      const std::uint64_t budget = path.starts_with(host.memory.path()) ? memory : disk;
      struct stat status {};
      ASSERT_EQ(::stat(path.c_str(), &status), 0);
      EXPECT_LE(static_cast<std::uint64_t>(status.st_size), budget);
      EXPECT_LE((static_cast<std::uint64_t>(status.st_size) + 4095) / 4096 * 4096, budget);
    }
    for (std::uint64_t s = 0; s < 200; ++s)
      ASSERT_EQ(hits(cache, key_of(s), bytes), cache.place(s) != CachePlace::nowhere);
  }
}

/// The real shared memory: its blocks are within the budget, and it has no other file than before.
TEST(ActivationCache, LeavesNothingInSharedMemory) {
  const std::filesystem::path shared = "/dev/shm";
  std::error_code error;
  if (!std::filesystem::is_directory(shared, error)) GTEST_SKIP() << "no /dev/shm";
  CacheHost host;
  CacheOptions options = host.options(100, kCacheEntry, 1 << 20, 0);
  options.memory_directory = shared;
  options.owner = "test " + host.memory.path();
  const auto ours = shared / ("concertina-cache-" + sha256_hex(options.owner).substr(0, 32));
  {
    ActivationCache cache(options, true);
    if (!host.warnings.empty()) GTEST_SKIP() << host.warnings[0];
    struct stat status {};
    ASSERT_EQ(::stat(ours.c_str(), &status), 0);
    EXPECT_LE(status.st_blocks * 512, 1 << 20);
    EXPECT_GE(status.st_blocks * 512, status.st_size) << "not reserved";
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    ASSERT_TRUE(store(cache, key_of(3), kCacheEntry));
    EXPECT_TRUE(hits(cache, key_of(3), kCacheEntry));
  }
  EXPECT_FALSE(std::filesystem::exists(ours)) << "a leader removes what it did not hide";
}

TEST(ActivationCache, TheNextStartRemovesWhatAKilledOneLeft) {
  for (const bool off : {false, true}) {
    CacheHost host;
    CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
    const std::string stranger = host.memory.path() + "/stranger";
    spill(stranger, "not ours");
    CacheOptions neighbour = options;
    neighbour.owner = "another run";
    ActivationCache theirs(neighbour, true);
    ASSERT_TRUE(store(theirs, key_of(1), kCacheEntry));
    Child killed([&] {
      ActivationCache cache(options, true);
      store(cache, key_of(1), kCacheEntry);
      spill(host.disk.path() + "/ready", "");
      for (;;) ::pause();
    });
    while (!std::filesystem::exists(host.disk.path() + "/ready")) std::this_thread::yield();
    killed.kill();
    ASSERT_EQ(host.files().size(), 2 + 2 + 2U) << "of both runs, the stranger, and the sign";
    if (off) options.memory_bytes = options.disk_bytes = 0;
    {
      ActivationCache next(options, true);
      EXPECT_FALSE(hits(next, key_of(1), kCacheEntry)) << "an entry of another launch";
    }
    EXPECT_EQ(host.files().size(), 2 + 2U);
    EXPECT_EQ(slurp(stranger), "not ours");
    EXPECT_TRUE(hits(theirs, key_of(1), kCacheEntry));
    EXPECT_TRUE(host.warnings.empty());
  }
}

TEST(ActivationCache, ALeaderThatWasKilledTakesNothingFromTheOthers) {
  CacheHost host;
  const CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  Child leader([&] {
    ActivationCache cache(options, true);
    while (!std::filesystem::exists(host.disk.path() + "/opened")) std::this_thread::yield();
    cache.hide();
    spill(host.disk.path() + "/hidden", "");
    for (;;) ::pause();
  });
  const auto files = [&] { return host.files().size(); };
  while (files() < 2) std::this_thread::yield();
  std::unique_ptr<ActivationCache> mine;
  do {  // the caller's ranks would wait for one another
    mine = std::make_unique<ActivationCache>(options, false);
  } while (mine->slots(CachePlace::disk) == 0 || mine->slots(CachePlace::memory) == 0);
  host.warnings.clear();
  spill(host.disk.path() + "/opened", "");
  while (!std::filesystem::exists(host.disk.path() + "/hidden")) std::this_thread::yield();
  leader.kill();
  EXPECT_EQ(files(), 2U) << "the two signs";
  for (std::uint64_t s = 0; s < 60; ++s) ASSERT_TRUE(store(*mine, key_of(s), kCacheEntry));
  for (std::uint64_t s = 0; s < 60; ++s) ASSERT_TRUE(hits(*mine, key_of(s), kCacheEntry));
  // The next launch does not meet the old one, and the old one takes nothing away from it.
  ActivationCache next(options, true);
  EXPECT_FALSE(hits(next, key_of(1), kCacheEntry));
  mine.reset();
  EXPECT_EQ(files(), 4U);
  EXPECT_TRUE(host.warnings.empty());
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
  EXPECT_TRUE(cache_pays(1 << 20, 1e9, 0.01).pays);
  EXPECT_FALSE(cache_pays(1 << 20, 1e9, 0.001).pays);
  EXPECT_TRUE(contains(cache_pays(1'024'000, 1.024e9, 0.01).reason,
                       "reading 1000.0 KiB takes 1 ms, computing them 10 ms: 10%"))
      << cache_pays(1'024'000, 1.024e9, 0.01).reason;
  const double bad[] = {0, -1, std::nan(""), std::numeric_limits<double>::infinity()};
  for (const double value : bad) {
    EXPECT_FALSE(cache_pays(1000, 1e9, value).pays) << value;
    if (!std::isinf(value)) {
      EXPECT_FALSE(cache_pays(1000, value, 1).pays) << value;
    }
  }
}

/// Prints what a hit costs at the size of a GPT of width 256 and context 256 in fp32.
TEST(CacheCost, TiersAreMeasured) {
  constexpr std::uint64_t kBytes = 256 * 256 * 4;
  CacheHost host;
  CacheOptions options = host.options(200, kBytes, 16 << 20, 16 << 20);
  if (std::error_code error; std::filesystem::is_directory("/dev/shm", error))
    options.memory_directory = "/dev/shm";
  options.owner = "test " + host.memory.path();
  ActivationCache cache(options, true);
  cache.hide();
  const CacheRates rates = cache.measure();
  for (const auto& [name, place, tier] : {std::tuple{"memory", CachePlace::memory, rates.memory},
                                          {"disk", CachePlace::disk, rates.disk}}) {
    if (cache.slots(place) == 0) continue;
    EXPECT_GT(tier.read, 0) << name;
    EXPECT_GT(tier.read_cold, 0) << name;
    EXPECT_GT(tier.write, 0) << name;
    std::printf("%s, entries of 256 KiB: hit %.1f us, cold %.1f us, write %.1f us\n", name,
                kBytes / tier.read * 1e6, kBytes / tier.read_cold * 1e6, kBytes / tier.write * 1e6);
  }
  for (std::uint64_t s = 0; s < 200; ++s)
    EXPECT_FALSE(hits(cache, {s, 0, prefix_digest("measurement", "", {})}, kBytes));
  EXPECT_EQ(cache.counts().faults, 0U);
}

}  // namespace
}  // namespace concertina
