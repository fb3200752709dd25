// Any failure below an activation cache is a miss and one warning, never wrong data.
#include <sys/syscall.h>

#include <fstream>

#include "tests/io/cache_fixture.h"
#include "tests/io/refused_call.h"

namespace concertina {
namespace {

TEST(CacheFault, TiersThatAreMissingAreOneWarning) {
  CacheHost host;
  CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  options.memory_directory += "/missing";
  ActivationCache no_memory(options);
  EXPECT_EQ(no_memory.place(0), CachePlace::disk) << "the next tier takes the first samples";
  EXPECT_EQ(host.warnings.size(), 1U);
  spill(host.disk.path() + "/file", "");
  options.disk_directory = host.disk.path() + "/file";
  ActivationCache none(options);
  ASSERT_EQ(host.warnings.size(), 2U);
  for (const char* const part : {"cache.memory", "cache.disk", "/missing", "No such file"})
    expect_has(host.warnings[1], part);
  ActivationCache follower(options, none.shared());
  EXPECT_FALSE(store(none, key_of(1), kCacheEntry) || hits(none, key_of(1), kCacheEntry));
  EXPECT_FALSE(store(follower, key_of(1), kCacheEntry) || hits(follower, key_of(1), kCacheEntry));
  none.prefetch(std::array<std::uint64_t, 2>{0, 50});
  EXPECT_EQ(none.measure_read(), 0);
  // A budget too small for one entry.
  host.warnings.clear();
  ActivationCache tiny(host.options(60, kCacheEntry, 4096, 0));
  host.expect_warning("no entry of 1000 bytes");
}

TEST(CacheFault, DamageIsOneWarningAndMisses) {
  CacheHost host;
  ActivationCache cache(host.options(60, kCacheEntry, kCacheBudget, kCacheBudget));
  for (std::uint64_t s = 0; s < 60; ++s) store(cache, key_of(s), kCacheEntry);
  for (const std::string& path : files_of(cache)) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t slot = 0; slot < 20; ++slot)
      file.seekp(static_cast<std::streamoff>(4096 + slot * 1088 + slot * 50)).put('!');
  }
  int missed = 0;
  for (std::uint64_t s = 0; s < 60; ++s) missed += !hits(cache, key_of(s), kCacheEntry);
  EXPECT_GE(missed, 38);  // a byte may have been '!' before
  EXPECT_LE(missed, 40);
  host.expect_warning("damaged entry in slot");
  EXPECT_EQ(cache.counts().faults, static_cast<std::uint64_t>(missed));
  for (std::uint64_t s = 0; s < 60; ++s) {
    ASSERT_TRUE(store(cache, key_of(s, 1), kCacheEntry));
    ASSERT_TRUE(hits(cache, key_of(s, 1), kCacheEntry));
  }
}

TEST(CacheFault, ACutFileTurnsItsTierOffWithOneWarning) {
  CacheHost host;
  ActivationCache cache(host.options(60, kCacheEntry, kCacheBudget, kCacheBudget));
  for (std::uint64_t s = 0; s < 60; ++s) store(cache, key_of(s), kCacheEntry);
  for (const std::string& path : files_of(cache))
    std::filesystem::resize_file(path, 4096 + 5 * 1088);
  int hit = 0;
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t s = 0; s < 60; ++s) hit += hits(cache, key_of(s), kCacheEntry);
  EXPECT_EQ(hit, 10) << "5 of each tier, in the first round";
  EXPECT_FALSE(store(cache, key_of(0), kCacheEntry));
  host.expect_warning("activations are not cached in cache.memory");
}

/// Exit codes of the child processes below.
constexpr int kAsExpected = 0, kWrong = 1, kCannotTry = 2;

/// Two full disks: nothing is stored or left behind, and there is one warning.
int try_full(CacheHost& host, std::uint64_t budget) {
  {
    ActivationCache cache(host.options(5000, kCacheEntry, budget, budget));
    for (std::uint64_t s = 0; s < 5000; s += 50)
      if (store(cache, key_of(s), kCacheEntry) || hits(cache, key_of(s), kCacheEntry))
        return kWrong;
    if (host.warnings.size() != 1 || !host.empty()) return kWrong;
  }
  const std::string& text = host.warnings[0];
  return contains(text, "not enough space for") && contains(text, "cache.disk") ? kAsExpected
                                                                                : kWrong;
}

TEST(CacheFault, FullDisksAreOneWarning) {
  CacheHost host;
  const int outcome = in_child([&] {
    for (const std::string& path : {host.memory.path(), host.disk.path()})
      if (!mount_tmpfs(path, "size=256k")) return kCannotTry;
    return try_full(host, 1 << 20);
  });
  if (outcome == kCannotTry) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(outcome, kAsExpected);
}

TEST(CacheFault, ARefusedReservationIsOneWarning) {
  CacheHost host;
  EXPECT_EQ(in_child([&] {
              return refuse_call(SYS_fallocate, ENOSPC) ? try_full(host, 1 << 20) : kCannotTry;
            }),
            kAsExpected);
}

TEST(CacheFault, ADiskThatFillsWithoutReservationIsOneWarning) {
  CacheHost host;
  const int outcome = in_child([&] {
    if (!mount_tmpfs(host.disk.path(), "size=256k") || !refuse_call(SYS_fallocate, EOPNOTSUPP))
      return kCannotTry;
    ActivationCache cache(host.options(900, kCacheEntry, 0, 1 << 20));
    int stored = 0, hit = 0;
    for (std::uint64_t s = 0; s < 900; ++s) stored += store(cache, key_of(s), kCacheEntry);
    for (std::uint64_t s = 0; s < 900; ++s) hit += hits(cache, key_of(s), kCacheEntry);
    if (stored < 200 || stored > 250 || hit != 0) return kWrong;
    return host.warnings.size() == 1 && contains(host.warnings[0], "No space left") ? kAsExpected
                                                                                    : kWrong;
  });
  if (outcome == kCannotTry) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(outcome, kAsExpected);
}

TEST(CacheFault, AReadOnlyDirectoryAndAFailingDiskAreOneWarning) {
  CacheHost host;
  const int read_only = in_child([&] {
    if (!mount_tmpfs(host.memory.path(), "size=256k", MS_RDONLY)) return kCannotTry;
    ActivationCache cache(host.options(20, kCacheEntry, kCacheBudget, 0));
    const bool kept = store(cache, key_of(1), kCacheEntry) || hits(cache, key_of(1), kCacheEntry);
    return !kept && host.warnings.size() == 1 ? kAsExpected : kWrong;
  });
  EXPECT_NE(read_only, kWrong);
  for (const int call : {SYS_pread64, SYS_pwrite64}) {
    const int outcome = in_child([&] {
      ActivationCache cache(host.options(20, kCacheEntry, 0, kCacheBudget));
      if (!store(cache, key_of(1), kCacheEntry) || !hits(cache, key_of(1), kCacheEntry))
        return kWrong;
      if (!refuse_call(call, EIO)) return kCannotTry;
      const bool kept = store(cache, key_of(2), kCacheEntry) && hits(cache, key_of(2), kCacheEntry);
      return !kept && !hits(cache, key_of(1), kCacheEntry) && host.warnings.size() == 1
                 ? kAsExpected
                 : kWrong;
    });
    EXPECT_EQ(outcome, kAsExpected) << call;
  }
}

}  // namespace
}  // namespace concertina
