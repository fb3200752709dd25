// The angles of rotary position embeddings (Su et al. 2021), one source for every backend.
#pragma once

#include <cmath>
#include <cstdint>

namespace concertina {

/// Radians a position by which pair i of a head of `head_dim` elements turns.
inline double rotary_frequency(double theta, std::int64_t head_dim, std::int64_t i) {
  return std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
}

}  // namespace concertina
