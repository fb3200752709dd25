// Vectors of the instruction set that this file is compiled for, and vector functions that no
// portable library provides. Included only by the per-ISA sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bf16.h"

#define CONCERTINA_PASTE2(a, b) a##b
#define CONCERTINA_PASTE(a, b) CONCERTINA_PASTE2(a, b)

namespace concertina::cpu {

using Int = std::int64_t;

namespace {

#if defined(__AVX512F__)
inline constexpr std::int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kLanes = 8;
#else
inline constexpr std::int64_t kLanes = 4;
#endif

/// Rounds n up to whole vectors.
constexpr Int padded(Int n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Unaligned and may alias, so that it can access any position of a float array.
typedef float Vec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

typedef int IntVec __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t BitsVec __attribute__((vector_size(kLanes * 4)));

// CONCERTINA_SHUFFLE(a, [b,] indices): the elements of a (followed by b) selected by `indices`.
#ifdef __clang__  // has no built-in for indices in a vector
template <class V, class Indices>
[[gnu::always_inline]] inline V shuffle(V a, V b, Indices indices) {
  constexpr int n = sizeof(V) / sizeof(a[0]);
  V out = a;
  for (int i = 0; i < n; ++i) {
    const int from = static_cast<int>(indices[i]);
    out[i] = from < n ? a[from] : b[from - n];
  }
  return out;
}
template <class V, class Indices>
[[gnu::always_inline]] inline V shuffle(V a, Indices indices) {
  return shuffle(a, a, indices);
}
#define CONCERTINA_SHUFFLE shuffle
#else
#define CONCERTINA_SHUFFLE __builtin_shuffle
#endif

// F is float, or Vec with the bits of its elements in U.
template <class F, class U>
[[gnu::always_inline]] inline F exp_of(F x) {
  const float magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const F shifted = x * 1.44269504088896341F + magic;
  const F n = shifted - magic;
  const F r = (x - n * 0.693145751953125F) - n * 1.42860682030941723e-6F;
  F p = r * (1.0F / 720) + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const U bits = (__builtin_bit_cast(U, shifted) + 127U) << 23;
  return x < -87.0F ? F{} : p * __builtin_bit_cast(F, bits);
}

/// e^x for x <= 0 (and slightly above, due to rounding) within 2 ulp; 0 below -87; NaN stays NaN.
/// Cody-Waite reduction and a Taylor polynomial of degree 6. Vectorizes in any loop.
[[gnu::always_inline]] inline float exp_nonpositive(float x) {
  return exp_of<float, std::uint32_t>(x);
}
[[gnu::always_inline]] inline Vec exp_nonpositive(Vec x) {
  return exp_of<Vec, BitsVec>(x);
}

}  // namespace
}  // namespace concertina::cpu
