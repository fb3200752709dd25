// The cost of a cached activation, and whether it is worth it.
#pragma once

#include <cstdint>
#include <string>

namespace concertina {

class CacheTier;

/// Bytes of data per second; 0 where nothing was measured.
struct TierRates {
  double write = 0;
  double read = 0;       // of a file that is in memory: copy and hash
  double read_cold = 0;  // of what the page cache has dropped; about `read` in shared memory
};
struct CacheRates {
  TierRates memory, disk;
};

/// Medians over up to 32 entries and 32 MiB of made-up data, which is removed again. `tier` loses
/// the entries that it has in these slots. Throws where the file fails.
TierRates measure_tier(CacheTier& tier);

struct CacheVerdict {
  bool pays = false;
  std::string reason;  // with both times, for a log and events.jsonl
};

/// Whether reading an entry is faster than computing it again: `forward_seconds` is the time that
/// the cached units take for one sample. Input that is no positive number never pays.
CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_bytes_per_s, double forward_seconds);

}  // namespace concertina
