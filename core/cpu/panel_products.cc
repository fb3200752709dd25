// fp32 products of linear maps for AVX2, where oneDNN (gemm:jit) would pack its operands in every
// call, which pays off only for large tiles. Weights are packed once per step as panels; the
// operands of a weight gradient are packed in blocks along the depth.
//
// Dimensions: M, N rows and columns of the result c, K depth.
#include "core/cpu/loops.h"
#include "core/cpu/panels.h"

namespace concertina::cpu {
namespace {

// Part of the numerics: sums run within blocks of about this depth, then over blocks. A panel of
// this depth and a tile's rows of the left side stay in an L1 of 32 KiB.
constexpr Int kBlockDepth = 256;
// Rows of a weight gradient whose strips stay in L2 while all panels are processed.
constexpr Int kStripRows = 192;

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

/// Calls f(first column, stored columns, valid columns) for each panel of a matrix of n columns.
template <class F>
[[gnu::always_inline]] inline void each_panel(Int n, F&& f) {
  for (Int j = 0, stored = padded(n); j < stored; j += kPanel)
    f(j, at_most(kPanel, stored - j), at_most(kPanel, n - j));
}

/// Returns the depth that divides k evenly into blocks; only the last may be shallower.
Int block_depth(Int k) {
  const Int blocks = k < kBlockDepth ? 1 : (k + kBlockDepth / 2) / kBlockDepth;
  return (k + blocks - 1) / blocks;
}

void copy(const float* from, Int width, Int rows, Int n, float* to, Int stride, bool add) {
  for (Int i = 0; i < rows; ++i, from += width, to += stride)
    for (Int j = 0; j < n; ++j) to[j] = add ? to[j] + from[j] : from[j];
}

void rows(const float* a, const float* b, Int m, Int k, Int n, float* c) {
  const Int most = block_depth(k);
  float edge[kPanelProductRows * kPanel];  // for a panel that is only partly in c
  for (Int p = 0; p < k; p += most)
    each_panel(n, [&](Int j, Int stored, Int valid) {
      const bool whole = stored == valid;
      micro_gemm<float>(m, stored, at_most(most, k - p), {a + p, k, 1}, {b + j * k, k, p},
                        whole ? c + j : edge, whole ? n : stored, p > 0);
      if (!whole && p + most >= k) copy(edge, stored, m, valid, c + j, n, false);
    });
}

// Packs left[K,M] as strips of kMicroRows columns, each contiguous.
void pack_strips(const float* left, Int stride, Int k, Int m, float* to) {
  const Int whole = m / kMicroRows * kMicroRows;
  for (Int p = 0; p < k; ++p, left += stride) {
    for (Int i = 0; i < whole; i += kMicroRows)
      __builtin_memcpy(to + i * k + p * kMicroRows, left + i, kMicroRows * sizeof(float));
    for (Int i = whole; i < m; ++i) to[whole * k + p * (m - whole) + i - whole] = left[i];
  }
}

// Packs rows[K,N] like pack_rows(), but row by row: it reads one page per row, not per panel.
void pack_panels(const float* rows, Int stride, Int k, Int n, float* to) {
  for (Int p = 0; p < k; ++p, rows += stride)
    each_panel(n, [&](Int j, Int stored, Int valid) {
      float* line = to + j * k + p * stored;
      if (valid == kPanel) {
#pragma GCC unroll 2
        for (Int i = 0; i < kPanel; i += kLanes)
          *reinterpret_cast<Vec*>(line + i) = *reinterpret_cast<const Vec*>(rows + j + i);
        return;
      }
      for (Int i = 0; i < stored; ++i) line[i] = i < valid ? rows[j + i] : 0;
    });
}

// c[M,N] (+)= strips[K,M]^T panels[K,N]. `edge` holds a panel that is only partly in c.
void add_strips(const float* strips, const float* panels, Int k, Int m, Int n, float* c, Int c_row,
                bool accumulate, float* edge) {
  each_panel(n, [&](Int j, Int stored, Int valid) {
    const bool whole = stored == valid;
    float* to = whole ? c + j : edge;
    const Int stride = whole ? c_row : stored;
    for (Int i = 0; i < m; i += kMicroRows) {
      const Int width = at_most(kMicroRows, m - i);
      micro_gemm<float>(width, stored, k, {strips + i * k, 1, width}, {panels + j * k, k},
                        to + i * stride, stride, whole && accumulate);
    }
    if (!whole) copy(edge, stored, m, valid, c + j, c_row, accumulate);
  });
}

Int outer_scratch(Int depth, Int m, Int n) {
  const Int rows = at_most(kStripRows, m);
  return block_depth(depth) * (padded(n) + rows) + rows * kPanel + 3 * 16;
}

void outer(const float* left, Int left_row, const float* right, Int right_row, Int depth, Int m,
           Int n, float* c, Int c_row, bool accumulate, float* scratch) {
  const Int most = block_depth(depth), rows = at_most(kStripRows, m);
  Cutter cut{scratch};
  float* panels = cut.take(most * padded(n));
  float* strips = cut.take(most * rows);
  float* edge = cut.take(rows * kPanel);
  for (Int p = 0; p < depth; p += most, accumulate = true) {
    const Int k = at_most(most, depth - p);
    pack_panels(right + p * right_row, right_row, k, n, panels);
    for (Int i = 0; i < m; i += rows) {
      const Int count = at_most(rows, m - i);
      pack_strips(left + p * left_row + i, left_row, k, count, strips);
      add_strips(strips, panels, k, count, n, c + i * c_row, c_row, accumulate, edge);
    }
  }
}

}  // namespace

extern const PanelProducts panel_products;
const PanelProducts panel_products = {packed, pack, rows, outer_scratch, outer};

}  // namespace concertina::cpu
