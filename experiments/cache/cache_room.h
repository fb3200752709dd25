// The entries that the budgets of [cache] hold, before any file is made.
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

/// Samples, of all ranks.
struct CacheUse {
  std::uint64_t memory_hits = 0, disk_hits = 0;
  std::uint64_t moved = 0;   // of these hits, of an older frontier: some units ran
  std::uint64_t misses = 0;  // computed from the input
  std::uint64_t writes = 0, faults = 0;
  std::uint64_t samples = 0;  // of an epoch, by views
  std::uint64_t slots = 0;    // samples for which there was room; 0: not known
};
nlohmann::ordered_json to_json(const CacheUse& use);
/// A sentence for a person.
std::string text_of(const CacheUse& use);

/// On each host. A tier without room for any sample has no file.
struct CacheRoom {
  std::uint64_t samples = 0, entry_bytes = 0;  // of an epoch, by views; what is made of a sample
  CacheSlots memory, disk;

  /// Bytes in shared memory.
  std::uint64_t memory_bytes() const { return memory.count > 0 ? memory.file_bytes() : 0; }
  std::uint64_t slots() const { return memory.count + disk.count; }
};

/// Whether a budget is set and something is frozen at some time.
bool uses_cache(const RunConfig& config);
/// Why a budget is without effect; empty if it has one, or if there is none.
std::string idle_cache(const RunConfig& config);

/// Nothing but zeros unless uses_cache(). `samples`: of all views. Throws bad input where a budget
/// holds no sample.
CacheRoom cache_room(const RunConfig& config, const ModelSpec& model, std::uint64_t samples);

/// The units whose output is kept: all frozen ones, as far as the first stage of each pipeline
/// reaches. The same for all pipelines, since a sample comes to another one in each epoch.
int cached_units(const Layout& layout);

}  // namespace concertina
