// Words of Philox4x32-10 (Salmon et al., SC'11), identical to Rng::words(). Included only by the
// per-ISA sources.
#pragma once

#include <immintrin.h>

#include "core/cpu/dropout_rule.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr int kWideLanes = 8;
#elif defined(__AVX2__)
inline constexpr int kWideLanes = 4;
#else
inline constexpr int kWideLanes = 2;
#endif

typedef std::uint64_t Wide __attribute__((vector_size(kWideLanes * 8)));

/// Returns the products of the lower halves of each lane.
[[gnu::always_inline]] inline Wide product_of_low(const Wide& a, const Wide& b) {
#if defined(__AVX512F__)
  return (Wide)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);  // plain mul: GCC bug 105593
#elif defined(__AVX2__)
  return (Wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (Wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

/// words[4 i + w] = word w at counter (step, sample, unit, first + i), for `counters` counters, a
/// multiple of kWideLanes. A 64-bit lane holds a word of the state in its lower half; products
/// ignore the upper half.
inline void philox(const DropoutRule& rule, std::uint32_t sample, std::uint32_t first, Int counters,
                   std::uint32_t* words) {
  const Wide m0 = Wide{} + 0xD2511F53U, m1 = Wide{} + 0xCD9E8D57U;
  Wide lane, low, high;  // low, high: x[0] y[0] x[1] y[1] ... of two vectors x, y
  for (unsigned i = 0; i < kWideLanes; ++i) {
    lane[i] = i;
    low[i] = i / 2 + i % 2 * kWideLanes;
    high[i] = low[i] + kWideLanes / 2;
  }
  for (Int i = 0; i < counters; i += kWideLanes) {
    Wide x0 = Wide{} + rule.step, x1 = Wide{} + sample, x2 = Wide{} + rule.unit,
         x3 = lane + (first + static_cast<std::uint32_t>(i));
    std::uint32_t key0 = rule.key0, key1 = rule.key1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Wide a = product_of_low(m0, x0), b = product_of_low(m1, x2);
      x0 = (b >> 32) ^ x1 ^ key0;
      x1 = b;
      x2 = (a >> 32) ^ x3 ^ key1;
      x3 = a;
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    const Wide x01 = (x0 & 0xFFFFFFFFU) | (x1 << 32), x23 = (x2 & 0xFFFFFFFFU) | (x3 << 32);
    const Wide pairs[2] = {CONCERTINA_SHUFFLE(x01, x23, low), CONCERTINA_SHUFFLE(x01, x23, high)};
    __builtin_memcpy(words + 4 * i, pairs, sizeof pairs);
  }
}

}  // namespace
}  // namespace concertina::cpu
