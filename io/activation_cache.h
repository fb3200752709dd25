// The outputs of a model's frozen units for each sample, kept for the next epoch, on one host.
// Invariant: a hit is what was written for that key; whatever goes wrong (no room, no permission, a
// damaged entry, a disk that fails) is a miss, and the first such thing is a warning. The files
// never have more bytes than the budgets.
//
// The first slots are in shared memory, the next ones on disk. Which sample has which slot is the
// caller's choice (experiments/cache/slot_plan.h): nothing is evicted but by writing in its place.
// So an entry stays readable under its old digest until one of a new digest takes its place: that
// is how entries move on when more units are frozen.
//
// The ranks of a host share the files: one of them, the leader, makes the cache; the others open
// the leader's. The files have no names and go with the last process that has them open, however it
// ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/error.h"
#include "io/cache_tier.h"

namespace concertina {

struct CacheVerdict {
  bool pays = false;
  std::string reason;  // with both times, for a log and events.jsonl
};

/// Whether reading an entry is faster than computing it again: `forward_seconds` is the time that
/// the cached units take for one sample. Input that is no positive number never pays.
CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_seconds, double forward_seconds);

struct CacheOptions {
  std::uint64_t samples = 0;  // of an epoch
  std::uint64_t entry_bytes = 0;
  std::uint64_t memory_bytes = 0, disk_bytes = 0;  // of all ranks of the host together; 0: no tier
  std::string memory_directory = "/dev/shm", disk_directory;
  // Gets the one warning, from whichever thread meets the fault; empty: it goes into the log.
  std::function<void(const std::string&)> warn;
};

enum class CachePlace { nowhere, memory, disk };

/// All but `faults` are of reads and writes that ended well.
struct CacheCounts {
  std::uint64_t memory_hits = 0, disk_hits = 0, misses = 0, writes = 0, faults = 0;
};

/// Several threads may use one object, and several processes the same cache; but two writers never
/// the same slot at the same time.
class ActivationCache {
 public:
  /// `leader`: shared() of the rank of this host that has made the cache; null: this one makes it.
  /// Never throws for what a file system says.
  explicit ActivationCache(const CacheOptions& options, const nlohmann::json& leader = {});
  ActivationCache(const ActivationCache&) = delete;
  ActivationCache& operator=(const ActivationCache&) = delete;

  /// For the other ranks of the host, which may open the cache as long as this one is there.
  nlohmann::json shared() const;

  /// Returns the key that read() would most likely find in `slot`; it reads and counts no data.
  std::optional<CacheKey> held(std::uint64_t slot);
  /// Whether `out` (entry_bytes of them) is now what was written for `key`. If not, its content
  /// means nothing.
  bool read(const CacheKey& key, std::span<std::byte> out);
  /// Whether `data` was kept: only in a slot that there is.
  bool write(const CacheKey& key, std::span<const std::byte> data);
  /// Starts to read the entries of these slots from the disk into the page cache, and returns at
  /// once. The kernel keeps what it has room for; nothing is taken from the budgets.
  void prefetch(std::span<const std::uint64_t> slots);

  CachePlace place(std::uint64_t slot) const;
  std::uint64_t slots(CachePlace place) const;
  CacheCounts counts() const { return {memory_.hits, disk_.hits, misses_, writes_, faults_}; }

  /// Measures a hit that the page cache has, over up to 32 entries and 32 MiB of each tier, and
  /// returns its mean over all slots in seconds; 0: nothing could be measured. Removes what these
  /// slots have: only before the first use. All ranks at once measure what they do to each other.
  double measure_read();

 private:
  struct Tier {
    const char* name;  // its budget's key, for messages
    std::optional<CacheTier> file{};
    std::atomic<bool> off = false;  // it failed: not touched again
    std::atomic<std::uint64_t> hits = 0;

    bool has(std::uint64_t slot) const { return file.has_value() && file->slots().holds(slot); }
  };

  void make(Tier& tier, const std::string& directory, std::uint64_t first, std::uint64_t budget);
  Tier* find(std::uint64_t slot);
  /// Counts a fault; the first one is a warning, the others are for the debug log.
  void fault(const std::string& text);
  void turn_off(Tier& tier, const Error& error);

  CacheOptions options_;
  Tier memory_{"cache.memory"}, disk_{"cache.disk"};
  std::atomic<bool> warned_ = false;
  std::atomic<std::uint64_t> misses_ = 0, writes_ = 0, faults_ = 0;
};

}  // namespace concertina
