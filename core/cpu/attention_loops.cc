// What attention does between its products (attention.cc); compiled once for each instruction set.
#include "core/cpu/kernels.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

constexpr Int padded(Int n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Loops over a row run over whole vectors: a remainder in scalar code would cost more than the row.
// What the mask hides in the last vector counts as minus infinity.
constexpr float kMasked = -1e30F;

void mask_row(float* s, Int valid) {
  for (Int j = valid; j < padded(valid); ++j) s[j] = kMasked;
}

// p[0, valid) = e^(scale s - top), zero up to n; returns the sum. Behind mask_row().
template <class T>
float exp_row(const float* s, Int valid, Int n, float scale, float top, T* p) {
  const Int whole = padded(valid);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int j = 0; j < whole; ++j) {
    const float e = exp_nonpositive(scale * s[j] - top);
    p[j] = rounded<T>(e);
    sum += e;
  }
  for (Int j = whole; j < n; ++j) p[j] = rounded<T>(0);
  return sum;
}

// scale times the largest of s[0, valid). Behind mask_row().
float max_row(const float* s, Int valid, float scale) {
  const Int whole = padded(valid);
  float top = s[0];
#pragma omp simd reduction(max : top)
  for (Int j = 0; j < whole; ++j) top = top > s[j] ? top : s[j];
  return scale * top;
}

template <class T>
void softmax(const ScoreTile& tile, float* s, T* p, float* inverse, float* lse) {
  for (Int i = 0; i < tile.rows; ++i, s += tile.stride, p += tile.stride) {
    const Int valid = tile.first + i + 1;
    mask_row(s, valid);
    const float top = max_row(s, valid, tile.scale);
    const float sum = exp_row(s, valid, tile.keys, tile.scale, top, p);
    inverse[i] = 1.0F / sum;
    lse[i] = top + __builtin_logf(sum);
  }
}

template <class T>
float dot(const T* a, const T* b, Int n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int j = 0; j < n; ++j) sum += to_float(a[j]) * to_float(b[j]);
  return sum;
}

template <class T>
void score_grads(const ScoreTile& tile, float* s, float* dp, const float* lse, HeadRows<const T> y,
                 HeadRows<const T> dy, T* p, T* ds) {
  const float scale = tile.scale;
  for (Int i = 0; i < tile.rows; ++i) {
    const float delta = dot(dy.data + i * dy.stride, y.data + i * y.stride, y.d);
    const Int at = i * tile.stride, valid = tile.first + i + 1;
    float *si = s + at, *di = dp + at;
    T *pi = p + at, *out = ds + at;
    mask_row(si, valid);
    const Int whole = padded(valid);
#pragma omp simd
    for (Int j = 0; j < whole; ++j) {
      const float e = exp_nonpositive(scale * si[j] - lse[i]);
      pi[j] = rounded<T>(e);
      out[j] = rounded<T>(scale * e * (di[j] - delta));
    }
    for (Int j = whole; j < tile.keys; ++j) pi[j] = out[j] = rounded<T>(0);
  }
}

template <class T>
void store(const float* from, const float* factor, Int rows, HeadRows<T> to) {
  for (Int i = 0; i < rows; ++i, from += to.d) {
    const float scale = factor == nullptr ? 1.0F : factor[i];
    T* out = to.data + i * to.stride;
#pragma omp simd
    for (Int j = 0; j < to.d; ++j) out[j] = rounded<T>(scale * from[j]);
  }
}

template <class T>
constexpr AttentionLoops<T> kAttentionLoops{softmax<T>, score_grads<T>, store<T>};

}  // namespace

extern const AttentionLoops<float> CONCERTINA_PASTE(attention_f32_, CONCERTINA_ISA);
const AttentionLoops<float> CONCERTINA_PASTE(attention_f32_,
                                             CONCERTINA_ISA) = kAttentionLoops<float>;
extern const AttentionLoops<Bf16> CONCERTINA_PASTE(attention_bf16_, CONCERTINA_ISA);
const AttentionLoops<Bf16> CONCERTINA_PASTE(attention_bf16_,
                                            CONCERTINA_ISA) = kAttentionLoops<Bf16>;

}  // namespace concertina::cpu
