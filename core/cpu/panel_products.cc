// Products of linear maps in fp32 for AVX2, where oneDNN (gemm:jit) packs its operands in every
// call and what that costs decides how large a tile has to be. Weights are packed once per step, as
// panels; what a weight gradient reads is packed by blocks of its depth.
//
// Legend: M, N rows and columns of the result, K depth; C = c.
#include "core/cpu/kernels.h"
#include "core/cpu/panel_packing.h"

namespace concertina::cpu {
namespace {

// Part of the numerics: sums are over blocks of this depth, and then of blocks. A panel of
// kRowDepth stays in L1; of kOuterDepth, beside a strip of the left side.
constexpr Int kRowDepth = 384, kOuterDepth = 256;

Int packed(Int k, Int n) {
  return k * padded(n);
}

void pack(const float* b, Int b_row, Int b_column, Int k, Int n, float* to) {
  Cutter cut{to};
  if (b_column == 1)
    pack_rows<FloatWords>({b, b_row}, k, n, cut);
  else
    pack_transposed<FloatWords>({b, b_column}, n, k, padded(n), cut);
}

/// f(first column, stored columns, valid columns) of each panel of a matrix of n columns.
template <class F>
[[gnu::always_inline]] inline void each_panel(Int n, F&& f) {
  for (Int j = 0, stored = padded(n); j < stored; j += kPanel)
    f(j, at_most(kPanel, stored - j), at_most(kPanel, n - j));
}

void copy(const float* from, Int width, Int rows, Int n, float* to, Int stride, bool add) {
  for (Int i = 0; i < rows; ++i, from += width, to += stride)
    for (Int j = 0; j < n; ++j) to[j] = add ? to[j] + from[j] : from[j];
}

void rows(const float* a, const float* b, Int m, Int k, Int n, float* c) {
  const Int blocks = (k + kRowDepth - 1) / kRowDepth, most = (k + blocks - 1) / blocks;
  float edge[kPanelProductRows * kPanel];  // of a panel that c has only a part of
  for (Int p = 0; p < k; p += most)
    each_panel(n, [&](Int j, Int stored, Int valid) {
      const bool whole = stored == valid;
      micro_gemm<float>(m, stored, at_most(most, k - p), {a + p, k, 1}, {b + j * k, k, p},
                        whole ? c + j : edge, whole ? n : stored, p > 0);
      if (!whole && p + most >= k) copy(edge, stored, m, valid, c + j, n, false);
    });
}

// left[K,M] as strips of kTileRows columns, each contiguous.
void pack_strips(const float* left, Int stride, Int k, Int m, float* to) {
  const Int whole = m / kTileRows * kTileRows;
  for (Int p = 0; p < k; ++p, left += stride) {
    for (Int i = 0; i < whole; i += kTileRows)
      __builtin_memcpy(to + i * k + p * kTileRows, left + i, kTileRows * sizeof(float));
    for (Int i = whole; i < m; ++i) to[whole * k + p * (m - whole) + i - whole] = left[i];
  }
}

Int outer_scratch(Int m, Int n) {
  return kOuterDepth * (padded(n) + m) + m * kPanel + 3 * 16;
}

void outer(const float* left, Int left_row, const float* right, Int right_row, Int depth, Int m,
           Int n, float* c, Int c_row, bool accumulate, float* scratch) {
  for (Int p = 0; p < depth; p += kOuterDepth, accumulate = true) {
    const Int k = at_most(kOuterDepth, depth - p);
    Cutter cut{scratch};
    float* strips = cut.take(k * m);
    float* edge = cut.take(m * kPanel);
    pack_strips(left + p * left_row, left_row, k, m, strips);
    const auto panels = pack_rows<FloatWords>({right + p * right_row, right_row}, k, n, cut);
    each_panel(n, [&](Int j, Int stored, Int valid) {
      const bool whole = stored == valid;
      float* to = whole ? c + j : edge;
      const Int stride = whole ? c_row : stored;
      for (Int i = 0; i < m; i += kTileRows) {
        const Int width = at_most(kTileRows, m - i);
        micro_gemm<float>(width, stored, k, {strips + i * k, 1, width}, {panels.data + j * k, k},
                          to + i * stride, stride, whole && accumulate);
      }
      if (!whole) copy(edge, stored, m, valid, c + j, c_row, accumulate);
    });
  }
}

}  // namespace

extern const PanelProducts panel_products;
const PanelProducts panel_products = {packed, pack, rows, outer_scratch, outer};

}  // namespace concertina::cpu
