// Small dense products on cache-resident operands, for attention's tiles.
// Invariant: the order of additions over k is ascending for every element, whatever the tile.
//
// C[m,n] (+)= A[m,k] B[k,n], k counted in words: a float, or a pair of bf16 that one instruction
// multiplies and adds. A by any two strides (so that A^T costs nothing), C fp32, row-major, B in
// panels of kPanel columns, each contiguous: rows that lie a power of two apart would evict each
// other from L1. n is a multiple of kLanes: callers pad.
#pragma once

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// Two neighbours along k; in memory, any two bf16.
struct [[gnu::may_alias]] Pair {
  std::uint32_t bits;
};
typedef int PairVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

template <class Word>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = Vec;
};
template <>
struct VectorOf<Pair> {
  using Type = PairVec;
};

[[gnu::always_inline]] inline Vec multiply_add(Vec sum, float a, Vec b) {
  return sum + a * b;
}
#if defined(__AVX512BF16__)
[[gnu::always_inline]] inline Vec multiply_add(Vec sum, Pair a, PairVec b) {
  const __m512i left = _mm512_set1_epi32(static_cast<int>(a.bits));
  return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)b);
}
#endif

template <class Word>
struct Strided {
  const Word* data;
  std::int64_t row, column;  // strides in words
};

inline constexpr std::int64_t kPanel = 2 * kLanes;

/// Rows [first, ...) of a matrix [depth, n]: element (p, j) is at
/// data[j0 depth + (first + p) w + j - j0], where j0 is the first column of j's panel and w its
/// width (kPanel, or kLanes for a last half panel).
template <class Word>
struct Panels {
  const Word* data;
  std::int64_t depth, first = 0;
};

/// n columns, cut or padded to whole stored panels of a matrix of `stored` columns.
inline std::int64_t whole_panels(std::int64_t n, std::int64_t stored) {
  const std::int64_t up = (n + kPanel - 1) / kPanel * kPanel;
  return up < stored ? up : stored;
}

template <int kRows, int kVecs, class Word>
[[gnu::always_inline]] inline void micro_tile(std::int64_t k, Strided<Word> a, const Word* b,
                                              float* c, std::int64_t ldc, bool accumulate) {
  using Right = typename VectorOf<Word>::Type;
  Vec sum[kRows][kVecs] = {};
  for (std::int64_t p = 0; p < k; ++p, b += kVecs * kLanes) {
    Right right[kVecs];
#pragma GCC unroll 8
    for (int j = 0; j < kVecs; ++j) right[j] = *reinterpret_cast<const Right*>(b + j * kLanes);
    const Word* left = a.data + p * a.column;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Word value = left[i * a.row];
#pragma GCC unroll 8
      for (int j = 0; j < kVecs; ++j) sum[i][j] = multiply_add(sum[i][j], value, right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVecs; ++j) {
      Vec& out = *reinterpret_cast<Vec*>(c + i * ldc + j * kLanes);
      out = accumulate ? out + sum[i][j] : sum[i][j];
    }
}

template <int kRows, class Word>
[[gnu::always_inline]] inline void micro_rows(std::int64_t n, std::int64_t k, Strided<Word> a,
                                              Panels<Word> b, float* c, std::int64_t ldc,
                                              bool accumulate) {
  std::int64_t j = 0;
  for (; j + kPanel <= n; j += kPanel)
    micro_tile<kRows, 2>(k, a, b.data + j * b.depth + b.first * kPanel, c + j, ldc, accumulate);
  if (j < n)
    micro_tile<kRows, 1>(k, a, b.data + j * b.depth + b.first * kLanes, c + j, ldc, accumulate);
}

// 16 AVX-512 or 12 AVX accumulators hide the latency of the multiply-add and fit the registers; of
// AVX2's 16, two more hold a row of B and one an element of A.
inline constexpr std::int64_t kMicroRows = kLanes == 16 ? 8 : kLanes == 8 ? 6 : 4;

template <class Word>
[[gnu::noinline]] void micro_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Strided<Word> a,
                                  Panels<Word> b, float* c, std::int64_t ldc, bool accumulate) {
  const auto advance = [&](std::int64_t rows) {
    a.data += rows * a.row;
    c += rows * ldc;
    m -= rows;
  };
  // The last 8 rows of six by six are two times 4: 6 and 2 would take longer.
  for (; m >= kMicroRows && (kMicroRows != 6 || m != 8); advance(kMicroRows))
    micro_rows<kMicroRows>(n, k, a, b, c, ldc, accumulate);
  for (; m >= 4; advance(4)) micro_rows<4>(n, k, a, b, c, ldc, accumulate);
  for (; m >= 2; advance(2)) micro_rows<2>(n, k, a, b, c, ldc, accumulate);
  if (m == 1) micro_rows<1>(n, k, a, b, c, ldc, accumulate);
}

}  // namespace
}  // namespace concertina::cpu
