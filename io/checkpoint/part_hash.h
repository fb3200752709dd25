// The hash of a stored part: SHA-256 in checkpoints, or 128-bit XXH3, whose text begins with
// "xxh3:", for data that exists only in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/sha256.h"

struct XXH3_state_s;

namespace concertina {

class PartHash {
 public:
  /// Creates a hash of the same kind as `like`.
  explicit PartHash(std::string_view like);
  void update(std::span<const std::byte> bytes);
  std::string text();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> fast_;  // null for SHA-256
  Sha256 sha256_;
};

/// Returns "xxh3:" and 32 hex digits.
std::string fast_part_hash(std::span<const std::byte> bytes);
bool is_part_hash(std::string_view text);

}  // namespace concertina
