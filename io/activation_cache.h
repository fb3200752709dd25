// Keeps the outputs of a model's frozen units for each sample on one host, for reuse in the next
// epoch. Invariant: a hit returns what was written for that key. Every fault (no space, no
// permission, a damaged entry, a failing disk) is treated as a miss, and only the first one is
// logged as a warning. The files never exceed the budgets.
//
// The first slots are in shared memory, the next ones on disk. The caller maps samples to slots
// (experiments/cache/slot_plan.h), and an entry is evicted only by overwriting its slot. An entry
// therefore stays readable under its old digest until one with a new digest replaces it, which is
// how entries are upgraded when more units are frozen.
//
// The ranks of a host share the files: one of them, the leader, creates the cache, and the others
// open the leader's files. The files are unnamed, so the kernel frees them once the last process
// that has them open exits, for whatever reason.
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
  std::string reason;  // both times, for a log and events.jsonl
};

/// Whether reading an entry is faster than recomputing it. `forward_seconds` is the time that the
/// cached units take for one sample. `pays` is false if either time is unknown.
CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_seconds, double forward_seconds);

struct CacheOptions {
  std::uint64_t samples = 0;  // per epoch
  std::uint64_t entry_bytes = 0;
  std::uint64_t memory_bytes = 0, disk_bytes = 0;  // of all ranks of the host; 0: no such tier
  std::string memory_directory = "/dev/shm", disk_directory;
  // Receives the only warning, on the thread that hits the fault. If empty, the warning is logged.
  std::function<void(const std::string&)> warn;
};

enum class CachePlace { nowhere, memory, disk };

/// A read that is not a hit is a miss, also after a fault; only successful writes are counted.
struct CacheCounts {
  std::uint64_t memory_hits = 0, disk_hits = 0, misses = 0, writes = 0, faults = 0;
};

/// Thread-safe, and several processes may share a cache, but a slot must not have two concurrent
/// writers.
class ActivationCache {
 public:
  /// `leader` is the shared() value of the rank that created the cache, or null to create it here.
  /// Never throws because of a file system error.
  explicit ActivationCache(const CacheOptions& options, const nlohmann::json& leader = {});
  ActivationCache(const ActivationCache&) = delete;
  ActivationCache& operator=(const ActivationCache&) = delete;

  /// Returns what the other ranks of the host need to open this cache while this object exists.
  nlohmann::json shared() const;

  /// Returns the key that read() would most likely find in `slot`. Does not count as a read.
  std::optional<CacheKey> held(std::uint64_t slot);
  /// Reads the entry of `key` into `out` (entry_bytes bytes). Returns false on a miss; the content
  /// of `out` is then unspecified.
  bool read(const CacheKey& key, std::span<std::byte> out);
  /// Writes the entry. Returns false if it was not stored, for example if there is no such slot.
  bool write(const CacheKey& key, std::span<const std::byte> data);
  /// Starts reading the entries of these slots from disk into the page cache and returns
  /// immediately. The kernel keeps what fits; this does not count against the budgets.
  void prefetch(std::span<const std::uint64_t> slots);

  CachePlace place(std::uint64_t slot) const;
  std::uint64_t slots(CachePlace place) const;
  CacheCounts counts() const { return {memory_.hits, disk_.hits, misses_, writes_, faults_}; }

  /// Measures hits served by the page cache, over up to 32 entries and 32 MiB per tier, and returns
  /// their mean time over all slots in seconds, or 0 if nothing could be measured. Clears the
  /// probed slots: call it only before first use. Calls by all ranks at once include interference.
  double measure_read();

 private:
  struct Tier {
    const char* name;  // key of its budget, for messages
    std::optional<CacheTier> file{};
    std::atomic<bool> off = false;  // failed, and no longer used
    std::atomic<std::uint64_t> hits = 0;

    bool has(std::uint64_t slot) const { return file.has_value() && file->slots().holds(slot); }
  };

  void make(Tier& tier, const std::string& directory, std::uint64_t first, std::uint64_t budget);
  Tier* find(std::uint64_t slot);
  /// Counts a fault, and logs the first one as a warning and the others at debug level.
  void fault(const std::string& text);
  /// Calls `use` with the file of the tier. Returns whether there is a tier and `use` did not throw
  /// an Error; if it did, the tier is no longer used.
  template <class Use>
  bool attempt(Tier* tier, const Use& use);

  CacheOptions options_;
  Tier memory_{"cache.memory"}, disk_{"cache.disk"};
  std::atomic<bool> warned_ = false;
  std::atomic<std::uint64_t> misses_ = 0, writes_ = 0, faults_ = 0;
};

}  // namespace concertina
