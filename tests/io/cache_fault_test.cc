// Whatever fails below a cache of activations is a miss and one warning, never wrong data.
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <fstream>

#include "tests/io/cache_fixture.h"
#include "tests/io/refused_call.h"

namespace concertina {
namespace {

TEST(CacheFault, ForeignFilesStayAndMemoryTakesAnotherName) {
  CacheHost host;
  const CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  std::vector<std::string> paths;
  {
    const ActivationCache cache(options, true);
    paths = host.files();
  }
  ASSERT_EQ(paths.size(), 2U);
  const std::string precious = host.disk.path() + "/precious";
  const std::function<void(const std::string&)> in_the_way[] = {
      [](const std::string& path) { spill(path, "something of a user's"); },
      [](const std::string& path) { spill(path, std::string(100'000, 'x')); },
      [](const std::string& path) { std::filesystem::create_directory(path); },
      [&](const std::string& path) { std::filesystem::create_symlink(precious, path); },
      [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }};
  for (const auto& put : in_the_way) {
    host.warnings.clear();
    spill(precious, "precious");
    for (const std::string& path : paths) put(path);
    {
      ActivationCache cache(options, true);
      EXPECT_EQ(cache.slots(CachePlace::memory), kCacheSlots);
      EXPECT_EQ(cache.slots(CachePlace::disk), 0U);
      EXPECT_TRUE(store(cache, key_of(1), kCacheEntry));
      CacheOptions told = options;
      told.memory_path = cache.memory_path();
      told.disk_bytes = 0;
      EXPECT_TRUE(hits(*std::make_unique<ActivationCache>(told, false), key_of(1), kCacheEntry));
      EXPECT_EQ(host.warnings.size(), 1U);
      EXPECT_TRUE(contains(host.warnings.at(0), host.disk.path())) << host.warnings[0];
      cache.hide();
      EXPECT_EQ(host.files().size(), 3U) << "what is in the way, and what is precious";
    }
    EXPECT_EQ(slurp(precious), "precious");
    for (const std::string& path : paths) {
      EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(path)));
      std::filesystem::remove_all(path);
    }
  }
  // What a launch leaves that is killed before its first write.
  for (const std::string& path : paths) spill(path, "");
  host.warnings.clear();
  EXPECT_EQ(ActivationCache(options, true).slots(CachePlace::disk), 60 - kCacheSlots);
  EXPECT_TRUE(host.warnings.empty());
}

TEST(CacheFault, TiersThatAreMissingAreOneWarning) {
  CacheHost host;
  CacheOptions options = host.options(60, kCacheEntry, kCacheBudget, kCacheBudget);
  options.memory_directory += "/missing";
  ActivationCache no_memory(options, true);
  EXPECT_EQ(no_memory.place(0), CachePlace::disk) << "the next tier takes the first samples";
  EXPECT_EQ(host.warnings.size(), 1U);
  spill(host.disk.path() + "/file", "");
  options.disk_directory = host.disk.path() + "/file";
  options.owner = "another run";
  ActivationCache none(options, true);
  ASSERT_EQ(host.warnings.size(), 2U);
  for (const char* const part : {"cache.memory", "cache.disk", "/missing", "No such file"})
    EXPECT_TRUE(contains(host.warnings[1], part)) << host.warnings[1];
  ActivationCache follower(options, false);
  EXPECT_FALSE(store(none, key_of(1), kCacheEntry) || hits(none, key_of(1), kCacheEntry));
  EXPECT_FALSE(store(follower, key_of(1), kCacheEntry) || hits(follower, key_of(1), kCacheEntry));
  none.prefetch(std::array<std::uint64_t, 2>{0, 50});
  EXPECT_EQ(none.measure().memory.read, 0);
  // A budget that holds nothing.
  host.warnings.clear();
  ActivationCache tiny(host.options(60, kCacheEntry, 4096, 0), true);
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_TRUE(contains(host.warnings[0], "hold no entry of 1000 bytes")) << host.warnings[0];
}

TEST(CacheFault, DamageIsOneWarningAndMisses) {
  CacheHost host;
  ActivationCache cache(host.options(60, kCacheEntry, kCacheBudget, kCacheBudget), true);
  for (std::uint64_t s = 0; s < 60; ++s) store(cache, key_of(s), kCacheEntry);
  for (const std::string& path : host.files()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t slot = 0; slot < 20; ++slot)
      file.seekp(static_cast<std::streamoff>(4096 + slot * 1088 + slot * 50)).put('!');
  }
  int missed = 0;
  for (std::uint64_t s = 0; s < 60; ++s) missed += !hits(cache, key_of(s), kCacheEntry);
  EXPECT_GE(missed, 38);  // a byte may have been '!' before
  EXPECT_LE(missed, 40);
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_TRUE(contains(host.warnings[0], "damaged entry in slot")) << host.warnings[0];
  EXPECT_EQ(cache.counts().faults, static_cast<std::uint64_t>(missed));
  for (std::uint64_t s = 0; s < 60; ++s) {
    ASSERT_TRUE(store(cache, key_of(s, 1), kCacheEntry));
    ASSERT_TRUE(hits(cache, key_of(s, 1), kCacheEntry));
  }
}

TEST(CacheFault, ACutFileTurnsItsTierOffWithOneWarning) {
  CacheHost host;
  ActivationCache cache(host.options(60, kCacheEntry, kCacheBudget, kCacheBudget), true);
  for (std::uint64_t s = 0; s < 60; ++s) store(cache, key_of(s), kCacheEntry);
  for (const std::string& path : host.files()) std::filesystem::resize_file(path, 4096 + 5 * 1088);
  int hit = 0;
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t s = 0; s < 60; ++s) hit += hits(cache, key_of(s), kCacheEntry);
  EXPECT_EQ(hit, 10) << "5 of each tier, in the first round";
  EXPECT_FALSE(store(cache, key_of(0), kCacheEntry));
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_TRUE(contains(host.warnings[0], "no activations are kept in cache.memory"))
      << host.warnings[0];
}

/// Exit codes of the children below.
constexpr int kAsExpected = 0, kWrong = 1, kCannotTry = 2;

/// Two full disks: nothing is kept, nothing is left, one warning.
int try_full(CacheHost& host, std::uint64_t budget) {
  {
    ActivationCache cache(host.options(5000, kCacheEntry, budget, budget), true);
    for (std::uint64_t s = 0; s < 5000; s += 50)
      if (store(cache, key_of(s), kCacheEntry) || hits(cache, key_of(s), kCacheEntry))
        return kWrong;
    if (host.warnings.size() != 1 || !host.files().empty()) return kWrong;
  }
  const std::string& text = host.warnings[0];
  return contains(text, "no room for") && contains(text, "cache.disk") ? kAsExpected : kWrong;
}

TEST(CacheFault, FullDisksAreOneWarning) {
  CacheHost host;
  const int outcome = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return kCannotTry;
    for (const std::string& path : {host.memory.path(), host.disk.path()})
      if (::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=256k") != 0) return kCannotTry;
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
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", host.disk.path().c_str(), "tmpfs", 0, "size=256k") != 0)
      return kCannotTry;
    if (!refuse_call(SYS_fallocate, EOPNOTSUPP)) return kCannotTry;
    ActivationCache cache(host.options(900, kCacheEntry, 0, 1 << 20), true);
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
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", host.memory.path().c_str(), "tmpfs", MS_RDONLY, "size=256k") != 0)
      return kCannotTry;
    ActivationCache cache(host.options(20, kCacheEntry, kCacheBudget, 0), true);
    const bool kept = store(cache, key_of(1), kCacheEntry) || hits(cache, key_of(1), kCacheEntry);
    return !kept && host.warnings.size() == 1 ? kAsExpected : kWrong;
  });
  EXPECT_NE(read_only, kWrong);
  for (const int call : {SYS_pread64, SYS_pwrite64}) {
    const int outcome = in_child([&] {
      ActivationCache cache(host.options(20, kCacheEntry, 0, kCacheBudget), true);
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
