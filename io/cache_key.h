// The identity of a cached activation.
// Invariant: equal keys imply equal bytes, so everything that affects an activation is in its key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/sha256.h"

namespace concertina {

struct CacheKey {
  std::uint64_t slot = 0;
  std::uint64_t sample = 0;  // index in the dataset, over all views of each sample
  Sha256Digest prefix{};     // prefix_digest() of the units that computed it
  bool operator==(const CacheKey&) const = default;
};

/// Returns the digest of a frozen prefix of a model: its description, how it computes (data type,
/// instruction set, library versions) and `tensors`, which identify the weights of the prefix in
/// order, such as by their SHA-256. Any changed, added, removed or moved text changes the digest.
Sha256Digest prefix_digest(std::string_view model, std::string_view numerics,
                           std::span<const std::string> tensors);

}  // namespace concertina
