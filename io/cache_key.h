// The identity of a cached activation.
// Invariant: equal keys mean equal bytes; whatever decides an activation is in its key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/sha256.h"

namespace concertina {

struct CacheKey {
  std::uint64_t slot = 0;    // where it is
  std::uint64_t sample = 0;  // its number in the data set, over all views of each
  Sha256Digest prefix{};     // of the units that computed it: prefix_digest()
  bool operator==(const CacheKey&) const = default;
};

/// The digest of a frozen prefix of a model: of what the model is, how it computes (type,
/// instruction set, library versions) and `tensors`, which name the weights of the prefix in order,
/// such as by their SHA-256. Any change of a text, of their number or of their order changes it.
Sha256Digest prefix_digest(std::string_view model, std::string_view numerics,
                           std::span<const std::string> tensors);

}  // namespace concertina
