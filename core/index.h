// Numbers of ranks, stages, units and microbatches are ints; what they index is not.
#pragma once

#include <cstddef>

namespace concertina {

/// A number that is not negative, as an index.
inline constexpr std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace concertina
