// What a launch read and wrote of cached activations.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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
/// A sentence for a person.
std::string text_of(const CacheUse& use);

}  // namespace concertina
