// Causal attention of one head in fp32, tiled by rows of queries; compiled once for each
// instruction set. Work above the diagonal is skipped by tile: queries [i0, i1) meet keys [0, i1)
// only. The probabilities are never kept: the backward pass recomputes them from log-sum-exp
// (FlashAttention, Dao et al. 2022).
//
// Legend: T tokens, D head dimension, P = D padded to whole vectors, N = T padded likewise.
#include "core/cpu/attention_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/micro_gemm.h"

namespace concertina::cpu {
namespace {

constexpr Int kQueryTile = 64;

// Scratch is cut in order; every piece starts on a cache line.
struct Cutter {
  float* at;
  float* take(Int count) {
    float* piece = at;
    at += (count + 15) / 16 * 16;
    return piece;
  }
};

// The rows of one head: contiguous D columns of a wider matrix.
struct Rows {
  const float* data;
  Int stride;
};

// A square of kLanes rows transposed in registers, by halves of ever larger blocks.
void transpose_square(const float* from, Int from_stride, float* to, Int to_stride) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) v[i] = *reinterpret_cast<const Vec*>(from + i * from_stride);
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    IntVec low, high;
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c) {
      const bool first = (c & step) == 0;
      low[c] = first ? c : static_cast<int>(kLanes) + c - step;
      high[c] = first ? c + step : static_cast<int>(kLanes) + c;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & step) != 0) continue;
      const Vec a = v[i], b = v[i + step];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + step] = __builtin_shuffle(a, b, high);
    }
  }
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) *reinterpret_cast<Vec*>(to + i * to_stride) = v[i];
}

// rows[T,D] transposed, as panels of [D,N]; zero beyond T.
Panels pack_transposed(Rows rows, Int t, Int d, Int n, Cutter& scratch) {
  float* out = scratch.take(d * n);
  for (Int j0 = 0; j0 < n; j0 += kPanel) {
    const Int w = kPanel < n - j0 ? kPanel : n - j0;
    for (Int j = 0; j < w; j += kLanes) {
      const float* row = rows.data + (j0 + j) * rows.stride;
      float* column = out + j0 * d + j;
      const Int valid = t - j0 - j < kLanes ? t - j0 - j : kLanes;
      Int p = 0;
      if (valid == kLanes)
        for (; p + kLanes <= d; p += kLanes)
          transpose_square(row + p, rows.stride, column + p * w, w);
      for (; p < d; ++p)
        for (Int i = 0; i < kLanes; ++i)
          column[p * w + i] = i < valid ? row[i * rows.stride + p] : 0.0F;
    }
  }
  return {out, d};
}

// rows[T,D] as panels of [T,P]; zero beyond D.
Panels pack_rows(Rows rows, Int t, Int d, Cutter& scratch) {
  const Int p = padded(d);
  float* out = scratch.take(t * p);
  for (Int j0 = 0; j0 < p; j0 += kPanel) {
    const Int w = kPanel < p - j0 ? kPanel : p - j0, valid = w < d - j0 ? w : d - j0;
    float* line = out + j0 * t;
    const float* row = rows.data + j0;
    for (Int i = 0; i < t; ++i, line += w, row += rows.stride) {
#pragma omp simd
      for (Int j = 0; j < valid; ++j) line[j] = row[j];
      for (Int j = valid; j < w; ++j) line[j] = 0;
    }
  }
  return {out, t};
}

void store_rows(const float* from, Int from_stride, float* to, Int to_stride, Int rows, Int d,
                float factor) {
  for (Int i = 0; i < rows; ++i) {
#pragma omp simd
    for (Int j = 0; j < d; ++j) to[i * to_stride + j] = factor * from[i * from_stride + j];
  }
}

float inverse_sqrt(Int d) {
  return 1.0F / __builtin_sqrtf(static_cast<float>(d));
}

Int last_query(Int i0, Int t) {
  return i0 + kQueryTile < t ? i0 + kQueryTile : t;
}

// Rows of scores lie this far apart: never a power of two, or they would evict each other from L1.
Int score_stride(Int n) {
  return n + kLanes;
}

std::size_t scratch(const HeadShape& shape, bool backward) {
  const Int n = padded(shape.tokens), p = padded(shape.head_dim), matrix = n * p;
  const Int scores = kQueryTile * score_stride(n), tile = kQueryTile * p;
  const Int floats = backward ? 7 * matrix + 2 * scores + tile : 2 * matrix + scores + tile;
  return static_cast<std::size_t>(floats + 16 * 16) * sizeof(float);
}

void forward(const HeadShape& shape, const float* q, const float* k, const float* v, float* y,
             float* lse, void* memory) {
  const Int t = shape.tokens, d = shape.head_dim, n = padded(t), p = padded(d);
  const Int ld = score_stride(n);
  const float scale = inverse_sqrt(d);
  Cutter cut{static_cast<float*>(memory)};
  const Panels kt = pack_transposed({k, shape.stride}, t, d, n, cut);  // [D,N]
  const Panels values = pack_rows({v, shape.stride}, t, d, cut);       // [T,P]
  float* s = cut.take(kQueryTile * ld);                                // [queries,N]
  float* out = cut.take(kQueryTile * p);                               // [queries,P]
  for (Int i0 = 0; i0 < t; i0 += kQueryTile) {
    const Int i1 = last_query(i0, t), rows = i1 - i0, keys = whole_panels(i1, n);
    micro_gemm(rows, keys, d, {q + i0 * shape.stride, shape.stride, 1}, kt, s, ld, false);
    float inverse[kQueryTile];
    for (Int i = 0; i < rows; ++i) {
      const Int valid = i0 + i + 1;
      mask_row(s + i * ld, valid);
      const float top = max_row(s + i * ld, valid, scale);
      const float sum = exp_row(s + i * ld, valid, i1, scale, top, s + i * ld);
      inverse[i] = 1.0F / sum;
      lse[i0 + i] = top + __builtin_logf(sum);
    }
    micro_gemm(rows, p, i1, {s, ld, 1}, values, out, p, false);
    for (Int i = 0; i < rows; ++i)
      store_rows(out + i * p, p, y + (i0 + i) * shape.width, shape.width, 1, d, inverse[i]);
  }
}

void backward(const HeadShape& shape, const float* q, const float* k, const float* v,
              const float* y, const float* lse, const float* dy, float* dq, float* dk, float* dv,
              void* memory) {
  const Int t = shape.tokens, d = shape.head_dim, n = padded(t), p = padded(d);
  const Int ld = score_stride(n);
  const float scale = inverse_sqrt(d);
  Cutter cut{static_cast<float*>(memory)};
  const Panels kt = pack_transposed({k, shape.stride}, t, d, n, cut);     // [D,N]
  const Panels vt = pack_transposed({v, shape.stride}, t, d, n, cut);     // [D,N]
  Panels queries = pack_rows({q, shape.stride}, t, d, cut);               // [T,P]
  Panels grads = pack_rows({dy, shape.width}, t, d, cut);                 // [T,P]
  const Panels keys_rows = pack_rows({k, shape.stride}, t, d, cut);       // [T,P]
  float *s = cut.take(kQueryTile * ld), *ds = cut.take(kQueryTile * ld);  // [queries,N]
  float *sum_k = cut.take(t * p), *sum_v = cut.take(t * p);               // [T,P]
  float* out = cut.take(kQueryTile * p);                                  // [queries,P]
  for (Int i = 0; i < t * p; ++i) sum_k[i] = sum_v[i] = 0;
  for (Int i0 = 0; i0 < t; i0 += kQueryTile) {
    const Int i1 = last_query(i0, t), rows = i1 - i0, keys = whole_panels(i1, n);
    const float* g = dy + i0 * shape.width;
    micro_gemm(rows, keys, d, {q + i0 * shape.stride, shape.stride, 1}, kt, s, ld, false);
    micro_gemm(rows, keys, d, {g, shape.width, 1}, vt, ds, ld, false);
    for (Int i = 0; i < rows; ++i) {
      const Int row = i0 + i, valid = row + 1;
      const float delta = dot(dy + row * shape.width, y + row * shape.width, d);
      float *si = s + i * ld, *di = ds + i * ld;
      mask_row(si, valid);
      exp_row(si, valid, i1, scale, lse[row], si);
#pragma omp simd
      for (Int j = 0; j < i1; ++j) di[j] = scale * si[j] * (di[j] - delta);
    }
    grads.first = queries.first = i0;
    micro_gemm(i1, p, rows, {s, 1, ld}, grads, sum_v, p, true);
    micro_gemm(i1, p, rows, {ds, 1, ld}, queries, sum_k, p, true);
    micro_gemm(rows, p, i1, {ds, ld, 1}, keys_rows, out, p, false);
    store_rows(out, p, dq + i0 * shape.stride, shape.stride, rows, d, 1.0F);
  }
  store_rows(sum_k, p, dk, shape.stride, t, d, 1.0F);
  store_rows(sum_v, p, dv, shape.stride, t, d, 1.0F);
}

}  // namespace

extern const PanelAttention CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA);
const PanelAttention CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA) = {scratch, forward,
                                                                           backward};

}  // namespace concertina::cpu
