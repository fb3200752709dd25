// Small dense products on cache-resident operands, for attention's tiles.
// Invariant: the order of additions over k is ascending for every element, whatever the tile.
//
// C[m,n] (+)= A[m,k] B[k,n]; A by any two strides (so that A^T costs nothing), C row-major, B in
// panels of kPanel columns, each contiguous: rows that lie a power of two apart would evict each
// other from L1. n is a multiple of kLanes: callers pad.
#pragma once

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

struct Strided {
  const float* data;
  std::int64_t row, column;  // strides in elements
};

inline constexpr std::int64_t kPanel = 2 * kLanes;

/// Rows [first, ...) of a matrix [depth, n]: element (p, j) is at
/// data[j0 depth + (first + p) w + j - j0], where j0 is the first column of j's panel and w its
/// width (kPanel, or kLanes for a last half panel).
struct Panels {
  const float* data;
  std::int64_t depth, first = 0;
};

/// n columns, cut or padded to whole stored panels of a matrix of `stored` columns.
inline std::int64_t whole_panels(std::int64_t n, std::int64_t stored) {
  const std::int64_t up = (n + kPanel - 1) / kPanel * kPanel;
  return up < stored ? up : stored;
}

template <int kRows, int kVecs>
[[gnu::always_inline]] inline void micro_tile(std::int64_t k, Strided a, const float* b, float* c,
                                              std::int64_t ldc, bool accumulate) {
  Vec sum[kRows][kVecs] = {};
  for (std::int64_t p = 0; p < k; ++p, b += kVecs * kLanes) {
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
[[gnu::always_inline]] inline void micro_rows(std::int64_t n, std::int64_t k, Strided a, Panels b,
                                              float* c, std::int64_t ldc, bool accumulate) {
  std::int64_t j = 0;
  for (; j + kPanel <= n; j += kPanel)
    micro_tile<kRows, 2>(k, a, b.data + j * b.depth + b.first * kPanel, c + j, ldc, accumulate);
  if (j < n)
    micro_tile<kRows, 1>(k, a, b.data + j * b.depth + b.first * kLanes, c + j, ldc, accumulate);
}

// 16 AVX-512 or 8 AVX accumulators hide the latency of the multiply-add and fit the registers.
inline constexpr std::int64_t kTileRows = kLanes == 16 ? 8 : 4;

[[gnu::noinline]] void micro_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Strided a,
                                  Panels b, float* c, std::int64_t ldc, bool accumulate) {
  const auto advance = [&](std::int64_t rows) {
    a.data += rows * a.row;
    c += rows * ldc;
    m -= rows;
  };
  for (; m >= kTileRows; advance(kTileRows)) micro_rows<kTileRows>(n, k, a, b, c, ldc, accumulate);
  for (; m >= 2; advance(2)) micro_rows<2>(n, k, a, b, c, ldc, accumulate);
  if (m == 1) micro_rows<1>(n, k, a, b, c, ldc, accumulate);
}

}  // namespace
}  // namespace concertina::cpu
