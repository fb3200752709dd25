// One tier of an activation cache: an unnamed file of equally sized slots in a host's shared memory
// or on its disk. The kernel frees it when the last process that has it open exits. Invariant:
// read() returns only what a single write() stored for the same key, even if another process is
// writing the slot or was killed while writing, bits flip, or the file is truncated. An entry is
// therefore copied to the reader's memory before its hash is checked, and the file is never mapped:
// touching a truncated page, or one for which the file system has no space, would raise SIGBUS. The
// format is in io/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "io/cache_key.h"
#include "io/file.h"

namespace concertina {

/// The range of slots that a tier stores, and the size of an entry.
struct CacheSlots {
  std::uint64_t first = 0, count = 0;  // slots [first, first + count)
  std::uint64_t entry_bytes = 0;
  bool operator==(const CacheSlots&) const = default;

  bool holds(std::uint64_t slot) const { return slot >= first && slot - first < count; }
  /// Size of the file, which never exceeds the budget passed to fit_slots().
  std::uint64_t file_bytes() const;
};
/// Returns slots for as many of samples [first, samples) as fit into `budget` bytes, possibly none.
CacheSlots fit_slots(std::uint64_t first, std::uint64_t samples, std::uint64_t entry_bytes,
                     std::uint64_t budget);

enum class CacheOutcome { hit, miss, damaged };

/// Threads and processes may read and write concurrently, with one writer per slot.
class CacheTier {
 public:
  /// Creates a file in `directory` with space for all slots, which are empty. Throws if there is
  /// not enough space.
  static CacheTier create(const std::string& directory, const CacheSlots& slots);
  /// Opens the file that another process on this host created and still has open, from its
  /// shared(). Throws Error{bad_input} if this process cannot access it.
  static CacheTier open(const nlohmann::json& shared);
  nlohmann::json shared() const;

  const CacheSlots& slots() const { return slots_; }
  const std::string& directory() const { return file_.path(); }

  /// Returns the key in the header of `slot` without reading the data, or nothing if the slot is
  /// empty or its header is damaged. Throws if the file cannot be read.
  std::optional<CacheKey> held(std::uint64_t slot) const;
  /// Copies the entry of `key` into `out`, which is modified in any case. Throws if the file cannot
  /// be read. Returns `damaged` if the entry is corrupt and no process is writing it.
  CacheOutcome read(const CacheKey& key, std::span<std::byte> out) const;
  /// Replaces the content of `key.slot` with `data`. Throws if writing fails; the slot is then
  /// empty or damaged.
  void write(const CacheKey& key, std::span<const std::byte> data);
  void clear(std::uint64_t slot);
  /// Asks the kernel to read a slot into its page cache in the background.
  void prefetch(std::uint64_t slot) const;

 private:
  CacheTier(File file, const CacheSlots& slots);
  std::uint64_t offset(std::uint64_t slot) const;

  File file_;
  CacheSlots slots_;
};

}  // namespace concertina
