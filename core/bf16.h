// bfloat16, the upper half of a float: the range of fp32 with 8 bits of precision.
// Invariant: rounding is the same on every instruction set, including denormals. It uses integer
// arithmetic, because AVX512-BF16's vcvtneps2bf16 flushes denormals, and other instruction sets do
// not have it. Functions are always inlined, because per-ISA sources include them (cpu/loops.h).
#pragma once

#include <cstdint>

namespace concertina {

struct Bf16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline float to_float(float x) {
  return x;
}
[[gnu::always_inline]] inline float to_float(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

/// Rounds to the nearest value of type T (float or Bf16), ties to even. NaN stays NaN.
template <class T>
[[gnu::always_inline]] inline T rounded(float x);

template <>
[[gnu::always_inline]] inline float rounded<float>(float x) {
  return x;
}
template <>
[[gnu::always_inline]] inline Bf16 rounded<Bf16>(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t nearest = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const std::uint32_t quiet = bits | 0x400000U;
  return {static_cast<std::uint16_t>((x != x ? quiet : nearest) >> 16)};
}

}  // namespace concertina
