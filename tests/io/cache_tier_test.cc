// Tests a file of cached activations with all kinds of damage: only what was written for a key is
// ever a hit.
#include "io/cache_tier.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/io/cache_fixture.h"

namespace concertina {
namespace {

constexpr std::uint64_t kEntry = 200;       // bytes of an entry
constexpr std::uint64_t kSlot = 64 + 256;   // header, data, up to a cache line
constexpr std::uint64_t kFirstSlot = 4096;  // position in the file

class CacheTierTest : public testing::Test {
 protected:
  CacheTier create(std::uint64_t count, std::uint64_t bytes = kEntry, std::uint64_t first = 0) {
    CacheTier tier = CacheTier::create(root_.path(), {first, count, bytes});
    shared_ = tier.shared();
    path_ = shared_["file"];
    return tier;
  }
  CacheTier open() { return CacheTier::open(shared_); }
  static void put(CacheTier& tier, const CacheKey& key) {
    tier.write(key, data_of(key, tier.slots().entry_bytes));
  }
  /// Returns the outcome; fails the test if a hit has wrong data.
  static CacheOutcome get(const CacheTier& tier, const CacheKey& key) {
    std::vector<std::byte> out(tier.slots().entry_bytes);
    const CacheOutcome outcome = tier.read(key, out);
    if (outcome == CacheOutcome::hit) {
      EXPECT_EQ(out, data_of(key, out.size())) << "slot " << key.slot;
    }
    return outcome;
  }
  std::string image() const { return slurp(path_); }
  void overwrite(std::uint64_t at, std::string_view text) {
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(at))
        .write(text.data(), std::ssize(text));
  }

  TemporaryDirectory root_;
  nlohmann::json shared_;
  std::string path_;  // while the tier exists
};

TEST_F(CacheTierTest, GivesWhatWasWrittenForTheSameKeyOnly) {
  CacheTier tier = create(5, kEntry, 10);
  EXPECT_EQ(std::filesystem::file_size(path_), kFirstSlot + 5 * kSlot);
  for (std::uint64_t s = 10; s < 15; ++s) EXPECT_EQ(get(tier, key_of(s)), CacheOutcome::miss);
  put(tier, key_of(12, 1, 7));
  EXPECT_EQ(get(tier, key_of(12, 1, 7)), CacheOutcome::hit);
  EXPECT_EQ(get(tier, key_of(12, 2, 7)), CacheOutcome::miss) << "another prefix";
  EXPECT_EQ(get(tier, key_of(12, 1, 8)), CacheOutcome::miss) << "another sample";
  EXPECT_EQ(get(tier, key_of(13, 1, 7)), CacheOutcome::miss) << "another sample";
  put(tier, key_of(12, 2, 7));  // the frontier has moved
  EXPECT_EQ(get(tier, key_of(12, 2, 7)), CacheOutcome::hit);
  EXPECT_EQ(get(tier, key_of(12, 1, 7)), CacheOutcome::miss);
  EXPECT_EQ(get(open(), key_of(12, 2, 7)), CacheOutcome::hit);
  const std::string before = image();
  put(tier, key_of(12, 2, 7));
  EXPECT_NE(image(), before) << "a reader could not tell that there was a write";
  tier.clear(12);
  EXPECT_EQ(get(tier, key_of(12, 2, 7)), CacheOutcome::miss);
  EXPECT_THROW(get(tier, key_of(15)), std::exception);
  EXPECT_THROW(get(tier, key_of(9)), std::exception);
}

TEST_F(CacheTierTest, AFlippedBitAnywhereIsNoHit) {
  CacheTier tier = create(3);
  for (std::uint64_t s = 0; s < 3; ++s) put(tier, key_of(s));
  const std::string whole = image();
  for (std::uint64_t byte = 0; byte < 64 + kEntry; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint64_t at = kFirstSlot + kSlot + byte;
      const char flipped = static_cast<char>(whole[at] ^ (1 << bit));
      overwrite(at, std::string_view(&flipped, 1));
      ASSERT_EQ(get(tier, key_of(1)), CacheOutcome::damaged) << "byte " << byte << " bit " << bit;
      overwrite(at, whole.substr(at, 1));
    }
  for (std::uint64_t s = 0; s < 3; ++s) EXPECT_EQ(get(tier, key_of(s)), CacheOutcome::hit);
}

TEST_F(CacheTierTest, NoiseAndForeignEntriesAreNoHits) {
  CacheTier tier = create(4);
  for (std::uint64_t s = 0; s < 4; ++s) put(tier, key_of(s));
  const std::string whole = image();
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const auto begin = draw(random, 0, 64 + kEntry - 1),
               count = draw(random, 1, kEntry + 64 - begin);
    std::string noise(static_cast<std::size_t>(count), '\0');
    if (i % 3 != 0)  // zeros: a block lost by the disk
      for (char& c : noise) c = static_cast<char>(random());
    const bool same = whole.substr(kFirstSlot + begin, count) == noise;
    overwrite(kFirstSlot + static_cast<std::uint64_t>(begin), noise);
    EXPECT_EQ(get(tier, key_of(0)) == CacheOutcome::hit, same);
    overwrite(kFirstSlot, whole.substr(kFirstSlot, kSlot));
  }
  // A valid entry of another sample in the wrong slot; a header with another entry's data.
  overwrite(kFirstSlot, whole.substr(kFirstSlot + kSlot, kSlot));
  EXPECT_EQ(get(tier, key_of(0)), CacheOutcome::miss);
  overwrite(kFirstSlot, whole.substr(kFirstSlot, 64));
  EXPECT_EQ(get(tier, key_of(0)), CacheOutcome::damaged);
  put(tier, key_of(0));
  EXPECT_EQ(get(tier, key_of(0)), CacheOutcome::hit) << "a damaged entry can be replaced";
}

TEST_F(CacheTierTest, ACutFileIsAnErrorNotABusErrorAndNeverAHit) {
  for (std::uint64_t size = 0; size < kFirstSlot + 2 * kSlot; size += 61) {
    CacheTier tier = create(2);
    for (std::uint64_t s = 0; s < 2; ++s) put(tier, key_of(s));
    std::filesystem::resize_file(path_, size);
    for (std::uint64_t s = 0; s < 2; ++s) {
      const bool whole = size >= kFirstSlot + s * kSlot + 64 + kEntry;
      try {
        ASSERT_EQ(get(tier, key_of(s)) == CacheOutcome::hit, whole) << size;
      } catch (const Error&) {
        ASSERT_FALSE(whole) << size;
      }
    }
  }
}

TEST_F(CacheTierTest, OthersOpenOnlyWhatIsMeant) {
  const CacheTier tier = create(4);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_.path()), {}), 0);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(open().slots(), (CacheSlots{0, 4, kEntry}));
  const nlohmann::json sound = shared_;
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"inode", 1},
                                   {"device", 1},
                                   {"file", "/dev/null"},
                                   {"file", "/proc/self/fd/1000"}}) {
    shared_ = sound;
    shared_[key] = value;
    EXPECT_ERROR(open(), "cannot open a cache file");
  }
}

TEST_F(CacheTierTest, SlotsFitTheirBudget) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto entry = static_cast<std::uint64_t>(draw(random, 1, 9000)),
               budget = static_cast<std::uint64_t>(draw(random, 0, 200'000)),
               samples = static_cast<std::uint64_t>(draw(random, 0, 60)),
               first = static_cast<std::uint64_t>(draw(random, 0, 60));
    const CacheSlots slots = fit_slots(first, samples, entry, budget);
    ASSERT_EQ(slots.first, first);
    ASSERT_LE(slots.count, samples - std::min(first, samples));
    if (slots.count > 0) {
      ASSERT_LE((slots.file_bytes() + 4095) / 4096 * 4096, budget) << "a file takes whole pages";
    }
    CacheSlots more = slots;
    ++more.count;
    if (first + slots.count < samples) {
      ASSERT_GT((more.file_bytes() + 4095) / 4096 * 4096, budget) << "one more had fitted";
    }
  }
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  EXPECT_EQ(fit_slots(0, kHuge, 1 << 20, std::uint64_t{1} << 62).count,
            ((1ULL << 62) - 4096) / ((1 << 20) + 64));
}

/// A reader in another process sees entries at every moment of a write.
TEST_F(CacheTierTest, AHalfWrittenEntryIsAMissAndNoDamage) {
  constexpr std::uint64_t kLarge = 150'000;
  CacheTier tier = create(1, kLarge);
  const auto a = data_of(key_of(0, 1), kLarge), b = data_of(key_of(0, 2), kLarge);
  Child writer([&] {
    CacheTier mine = open();
    for (;;) {
      mine.write(key_of(0, 1), a);
      mine.write(key_of(0, 2), b);
    }
  });
  int hit = 0, missed = 0;
  std::vector<std::byte> out(kLarge);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end)
    for (const int version : {1, 2}) {
      const CacheOutcome outcome = tier.read(key_of(0, version), out);
      EXPECT_NE(outcome, CacheOutcome::damaged);
      if (outcome == CacheOutcome::hit) {
        EXPECT_TRUE(out == (version == 1 ? a : b));
      }
      ++(outcome == CacheOutcome::hit ? hit : missed);
    }
  EXPECT_GT(hit, 0);
  EXPECT_GT(missed, 0);
}

TEST_F(CacheTierTest, KillsOfAWriterLeaveWholeEntriesOrNone) {
  constexpr std::uint64_t kLarge = 50'000, kCount = 8;
  Random random(3);
  int hit = 0;
  const CacheTier made = create(kCount, kLarge);
  for (int round = 0; round < 60; ++round) {
    Child writer([&] {
      CacheTier mine = open();
      Random chance(static_cast<std::uint64_t>(round));
      for (;;) {
        const auto sample = static_cast<std::uint64_t>(draw(chance, 0, kCount - 1));
        put(mine, key_of(sample, static_cast<int>(draw(chance, 0, 1))));
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(draw(random, 500, 4000)));
    writer.kill();
    const CacheTier after = open();
    for (std::uint64_t s = 0; s < kCount; ++s)
      for (const int version : {0, 1}) {
        const CacheOutcome outcome = get(after, key_of(s, version));
        EXPECT_NE(outcome, CacheOutcome::damaged);
        hit += outcome == CacheOutcome::hit;
      }
  }
  EXPECT_GT(hit, 0);
}

/// Returns whether byte `at` of the file is in the page cache. (Unlike preadv2 with RWF_NOWAIT,
/// mincore does not load it.)
bool is_cached(const std::string& path, std::uint64_t at) {
  const File file(::open(path.c_str(), O_RDWR), path);
  constexpr std::uint64_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file.descriptor(),
                            static_cast<off_t>(at / kPage * kPage));
  unsigned char resident = 0;
  EXPECT_EQ(::mincore(page, kPage, &resident), 0);
  ::munmap(page, kPage);
  return (resident & 1) != 0;
}

TEST_F(CacheTierTest, PrefetchReadsInTheBackground) {
  constexpr std::uint64_t kLarge = 300'000;
  CacheTier tier = create(40, kLarge);
  for (std::uint64_t s = 0; s < 40; ++s) put(tier, key_of(s));
  {
    File file(::open(path_.c_str(), O_RDWR), path_);
    file.sync();
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  const std::uint64_t end_of_30 = kFirstSlot + 31 * ((64 + kLarge + 63) / 64 * 64) - 64;
  if (is_cached(path_, end_of_30)) GTEST_SKIP() << "this file system keeps all in memory";
  tier.prefetch(30);
  for (int i = 0; i < 500 && !is_cached(path_, end_of_30); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_cached(path_, end_of_30));
  EXPECT_EQ(get(tier, key_of(30)), CacheOutcome::hit);
  EXPECT_EQ(get(tier, key_of(31)), CacheOutcome::hit);
}

}  // namespace
}  // namespace concertina
