#pragma once

#include <cstdint>

namespace concertina::cpu {

/// The constants of a DropoutMask (core/rng.h): the Philox key, two counters, threshold and scale.
struct DropoutRule {
  std::uint32_t key0, key1, step, unit, threshold;
  float scale;
};

}  // namespace concertina::cpu
