// The number of entries that fit within the [cache] budgets, computed before any file is created.
// Invariant: pure; the same on every rank.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/config/config.h"
#include "io/cache_tier.h"
#include "parallel/plan/job.h"
#include "parallel/plan/layout.h"

namespace concertina {

/// Sample counts over all ranks.
struct CacheUse {
  std::uint64_t memory_hits = 0, disk_hits = 0;
  std::uint64_t moved = 0;   // hits on an older frontier's entry, after which some units ran
  std::uint64_t misses = 0;  // computed from the input
  std::uint64_t writes = 0, faults = 0;
  std::uint64_t samples = 0;  // per epoch, over all views
  std::uint64_t slots = 0;    // available; 0: unknown
};
nlohmann::ordered_json to_json(const CacheUse& use);
/// A human-readable summary.
std::string text_of(const CacheUse& use);

/// The slots on each host. A tier that has no room for any sample has no file.
struct CacheRoom {
  std::uint64_t samples = 0, entry_bytes = 0;  // per epoch, over all views; size of a cached output
  CacheSlots memory, disk;

  /// Bytes used in shared memory.
  std::uint64_t memory_bytes() const { return memory.count > 0 ? memory.file_bytes() : 0; }
  std::uint64_t slots() const { return memory.count + disk.count; }
};

/// Whether a budget is set and something is frozen at some point.
bool uses_cache(const RunConfig& config);
/// The reason why a budget has no effect; empty if it has an effect, or if no budget is set.
std::string idle_cache(const RunConfig& config);

/// Returns zeros unless uses_cache(). `samples`: number of samples over all views. Throws
/// Error{bad_input} if a budget is too small for one sample.
CacheRoom cache_room(const RunConfig& config, const ModelSpec& model, std::uint64_t samples);

/// The number of units whose output is cached: the frozen units that are in the first stage of
/// every pipeline. All pipelines use this number, because samples move between them every epoch.
int cached_units(const Layout& layout);

}  // namespace concertina
