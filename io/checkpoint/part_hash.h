// The hash of a stored part: SHA-256, which a checkpoint has for ever, or the 128 bits of XXH3 for
// what lives in memory alone. A text of the latter begins with "xxh3:".
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
  /// Makes a hash of the kind that `like` is.
  explicit PartHash(std::string_view like);
  void update(std::span<const std::byte> bytes);
  std::string text();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> fast_;  // null: SHA-256
  Sha256 sha256_;
};

/// "xxh3:" and 32 hex digits.
std::string fast_part_hash(std::span<const std::byte> bytes);
bool is_part_hash(std::string_view text);

}  // namespace concertina
