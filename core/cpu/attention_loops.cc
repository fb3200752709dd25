// The loops between the products of bf16 attention (product_attention.cc), and attention of single
// queries (cached_attention.cc), compiled once per instruction set.
#include "core/cpu/attention_rows.h"
#include "core/cpu/loops.h"

namespace concertina::cpu {
namespace {

void drop_row(const std::uint32_t* keep, Int keys, Bf16* p) {
#pragma omp simd
  for (Int j = 0; j < keys; ++j) p[j].bits &= static_cast<std::uint16_t>(keep[j]);
}

void softmax(const ScoreTile& tile, float* s, Bf16* p, float* inverse, float* lse) {
  for (Int i = 0; i < tile.rows; ++i, s += tile.stride, p += tile.stride) {
    const Int valid = seen_by(tile.seen, i);
    mask_row(s, valid);
    const float top = max_row(s, valid, tile.scale);
    const float sum = exp_row(s, valid, tile.keys, tile.scale, top, p);
    if (tile.drop != nullptr) {
      kept_of_row(*tile.drop, tile.first + i, valid, tile.keep);
      drop_row(tile.keep, valid, p);
    }
    inverse[i] = 1.0F / sum;
    lse[i] = top + __builtin_logf(sum);
  }
}

void score_grads(const ScoreTile& tile, float* s, float* dp, const float* lse, const Bf16* y,
                 const Bf16* dy, HeadRows rows, Bf16* p, Bf16* ds) {
  const float scale = tile.scale;
  for (Int i = 0; i < tile.rows; ++i) {
    const float delta = dot(dy + i * rows.stride, y + i * rows.stride, rows.d);
    const Int at = i * tile.stride, valid = seen_by(tile.seen, i), whole = padded(valid);
    float *si = s + at, *di = dp + at;
    Bf16 *pi = p + at, *out = ds + at;
    mask_row(si, valid);
    if (tile.drop != nullptr) {
      kept_of_row(*tile.drop, tile.first + i, valid, tile.keep);
      drop_grads(tile.keep, tile.drop->rule.scale, valid, di);
    }
#pragma omp simd
    for (Int j = 0; j < whole; ++j) {
      const float e = exp_nonpositive(scale * si[j] - lse[i]);
      pi[j] = rounded<Bf16>(e);
      out[j] = rounded<Bf16>(scale * e * (di[j] - delta));
    }
    for (Int j = whole; j < tile.keys; ++j) pi[j] = out[j] = rounded<Bf16>(0);
    if (tile.drop != nullptr) drop_row(tile.keep, valid, pi);
  }
}

void store(const float* from, const float* factor, float scale, Int count, HeadRows rows,
           Bf16* to) {
  for (Int i = 0; i < count; ++i, from += rows.d, to += rows.stride) {
    const float all = factor == nullptr ? scale : scale * factor[i];
#pragma omp simd
    for (Int j = 0; j < rows.d; ++j) to[j] = rounded<Bf16>(all * from[j]);
  }
}

template <class T>
void attend_row(const T* q, const T* k, const T* v, Int keys, Int d, float* scratch, T* y) {
  const Int whole = padded(keys);
  float *const s = scratch, *const out = scratch + whole;
  for (Int j = 0; j < keys; ++j) s[j] = dot(q, k + j * d, d);
  mask_row(s, keys);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(d));
  const float sum = exp_row(s, keys, whole, scale, max_row(s, keys, scale), s);
  for (Int c = 0; c < d; ++c) out[c] = 0;
  for (Int j = 0; j < keys; ++j) {
    const float weight = s[j];
    const T* const row = v + j * d;
#pragma omp simd
    for (Int c = 0; c < d; ++c) out[c] += weight * to_float(row[c]);
  }
  for (Int c = 0; c < d; ++c) y[c] = rounded<T>(out[c] / sum);
}

}  // namespace

extern const AttentionLoops CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA);
const AttentionLoops CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA) = {
    softmax, score_grads, store, attend_row<float>, attend_row<Bf16>};

}  // namespace concertina::cpu
