// Ranks, stages, units and microbatches are numbered by int, but containers are indexed by size_t.
#pragma once

#include <cstddef>

namespace concertina {

/// Converts a nonnegative number to an index.
inline constexpr std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace concertina
