// Small dense products on cache-resident operands, for attention's tiles.
// Invariant: the order of additions over k is ascending for every element, whatever the tile.
//
// C[m,n] (+)= A[m,k] B[k,n]; A by any two strides (so that A^T costs nothing), B and C row-major.
// n is a multiple of kLanes: callers pad.
#pragma once

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

struct Strided {
  const float* data;
  std::int64_t row, column;  // strides in elements
};

template <int kRows, int kVecs>
[[gnu::always_inline]] inline void micro_tile(std::int64_t k, Strided a, const float* b,
                                              std::int64_t ldb, float* c, std::int64_t ldc,
                                              bool accumulate) {
  Vec sum[kRows][kVecs] = {};
  for (std::int64_t p = 0; p < k; ++p, b += ldb) {
    Vec right[kVecs];
#pragma GCC unroll 8
    for (int j = 0; j < kVecs; ++j) right[j] = *reinterpret_cast<const Vec*>(b + j * kLanes);
    const float* left = a.data + p * a.column;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float value = left[i * a.row];
#pragma GCC unroll 8
      for (int j = 0; j < kVecs; ++j) sum[i][j] += value * right[j];
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

template <int kRows>
[[gnu::always_inline]] inline void micro_rows(std::int64_t n, std::int64_t k, Strided a,
                                              const float* b, std::int64_t ldb, float* c,
                                              std::int64_t ldc, bool accumulate) {
  std::int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes)
    micro_tile<kRows, 2>(k, a, b + j, ldb, c + j, ldc, accumulate);
  for (; j < n; j += kLanes) micro_tile<kRows, 1>(k, a, b + j, ldb, c + j, ldc, accumulate);
}

// 16 AVX-512 or 8 AVX accumulators hide the latency of the multiply-add and fit the registers.
inline constexpr std::int64_t kTileRows = kLanes == 16 ? 8 : 4;

[[gnu::noinline]] void micro_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Strided a,
                                  const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                                  bool accumulate) {
  const auto advance = [&](std::int64_t rows) {
    a.data += rows * a.row;
    c += rows * ldc;
    m -= rows;
  };
  for (; m >= kTileRows; advance(kTileRows))
    micro_rows<kTileRows>(n, k, a, b, ldb, c, ldc, accumulate);
  for (; m >= 2; advance(2)) micro_rows<2>(n, k, a, b, ldb, c, ldc, accumulate);
  if (m == 1) micro_rows<1>(n, k, a, b, ldb, c, ldc, accumulate);
}

}  // namespace
}  // namespace concertina::cpu
