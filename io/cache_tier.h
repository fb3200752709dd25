// One tier of an activation cache: a file of equal slots without a name, in a host's shared memory
// or on its disk. It goes with the last process that has it open, however that ends.
// Invariant: what read() gives is what one write() was given for the same key, whatever happens to
// the file: another process is writing the slot or was killed while it did, bits flip, the file is
// cut. So an entry is copied to the reader's memory before its hash is checked, and the file is
// never mapped: touching a page that was cut off, or that the file system has no room for, would
// be a bus error. io/README.md has the format.
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

/// Which of a data set's entries a tier has room for, and how large each is.
struct CacheSlots {
  std::uint64_t first = 0, count = 0;  // slots [first, first + count)
  std::uint64_t entry_bytes = 0;
  bool operator==(const CacheSlots&) const = default;

  bool holds(std::uint64_t slot) const { return slot >= first && slot - first < count; }
  /// The file's size; at most the budget that the slots were made for.
  std::uint64_t file_bytes() const;
};
/// Slots for as many of samples [first, samples) as `budget` bytes of file hold; maybe none.
CacheSlots fit_slots(std::uint64_t first, std::uint64_t samples, std::uint64_t entry_bytes,
                     std::uint64_t budget);

enum class CacheOutcome { hit, miss, damaged };

/// Several threads and processes may read and write at once, each slot by one writer.
class CacheTier {
 public:
  /// Makes a file in `directory` with room for all slots, all empty. Throws where the file system
  /// has no room.
  static CacheTier create(const std::string& directory, const CacheSlots& slots);
  /// Opens what another process of this host has made and still has open, by its shared(). An input
  /// error where this process cannot see it.
  static CacheTier open(const nlohmann::json& shared);
  nlohmann::json shared() const;

  const CacheSlots& slots() const { return slots_; }
  const std::string& directory() const { return file_.path(); }

  /// The key of what `slot` says that it holds, without a look at the data; nothing
  /// if it is empty or its header damaged. Throws if the file cannot be read.
  std::optional<CacheKey> held(std::uint64_t slot) const;
  /// Copies the entry of `key` into `out`, which is changed in any case. Throws if the file cannot
  /// be read. Damaged: the entry is not what was written, and nobody is writing it now.
  CacheOutcome read(const CacheKey& key, std::span<std::byte> out) const;
  /// Puts `data` in place of what `key.slot` holds. Throws if it cannot be written:
  /// the slot is then empty or damaged.
  void write(const CacheKey& key, std::span<const std::byte> data);
  void clear(std::uint64_t slot);
  /// Has the system read a slot into its page cache in the background, if it is not there.
  void prefetch(std::uint64_t slot) const;

 private:
  CacheTier(File file, const CacheSlots& slots);
  std::uint64_t offset(std::uint64_t slot) const;

  File file_;
  CacheSlots slots_;
};

}  // namespace concertina
