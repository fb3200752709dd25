// The cached activations that a launch read and wrote.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace concertina {

/// Samples, of all ranks.
struct CacheUse {
  std::uint64_t memory_hits = 0, disk_hits = 0;
  std::uint64_t moved = 0;   // of these hits, of an older frontier: some units ran
  std::uint64_t misses = 0;  // computed from the input
  std::uint64_t writes = 0, faults = 0;
};
nlohmann::ordered_json to_json(const CacheUse& use);
/// That of `result`, a result.json; none where it has no cache that this version can read.
std::optional<CacheUse> cache_use_from(const nlohmann::json& result);
/// A sentence for a person.
std::string text_of(const CacheUse& use);

}  // namespace concertina
