// Vectors of the instruction set that this file is compiled for, and the functions of them that
// no library offers portably. Included by the per-ISA sources alone.
#pragma once

#include <cstddef>
#include <cstdint>

#define CONCERTINA_PASTE2(a, b) a##b
#define CONCERTINA_PASTE(a, b) CONCERTINA_PASTE2(a, b)

namespace concertina::cpu {
namespace {

#if defined(__AVX512F__)
inline constexpr std::int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kLanes = 8;
#else
inline constexpr std::int64_t kLanes = 4;
#endif

// Unaligned, may alias: loads and stores through it are legal anywhere in a float array.
typedef float Vec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

typedef int IntVec __attribute__((vector_size(kLanes * 4)));

/// e^x for x <= 0 (and a little above, by rounding), 2 ulp; 0 below -87; NaN stays NaN. Cody-Waite
/// reduction, degree-6 Taylor polynomial; vectorises in any loop.
[[gnu::always_inline]] inline float exp_nonpositive(float x) {
  const float magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341F + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693145751953125F) - n * 1.42860682030941723e-6F;
  float p = 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  std::int32_t bits;
  __builtin_memcpy(&bits, &shifted, 4);
  bits = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits + 127) << 23);
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  return x < -87.0F ? 0.0F : p * scale;
}

}  // namespace
}  // namespace concertina::cpu
