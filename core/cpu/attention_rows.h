// Rows of attention scores. Included only by the per-ISA sources. T is the type in which
// probabilities are stored: float or Bf16.
#pragma once

#include "core/cpu/loops.h"
#include "core/cpu/philox.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

Int seen_by(const SeenKeys& keys, Int query) {
  const Int all = keys.first + query * keys.step, n = all < keys.most ? all : keys.most;
  if (n < 1) __builtin_unreachable();
  return n;
}

// Loops over a row process whole vectors, because a scalar remainder would cost more than the row.
// Masked scores in the last vector count as minus infinity.
constexpr float kMasked = -1e30F;

// `end` is the end of the last vector, up to which elements are masked.
void mask_row(float* s, Int valid, Int end) {
  IntVec lane;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  Vec& last = *reinterpret_cast<Vec*>(s + end - kLanes);
  last = lane < static_cast<int>(valid - end + kLanes) ? last : Vec{} + kMasked;
}

void mask_row(float* s, Int valid) {
  mask_row(s, valid, padded(valid));
}

// p[0, valid) = e^(scale s - top), then zero up to n. Returns the sum. Call mask_row() first.
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

// Returns scale times the largest of s[0, valid). Call mask_row() first.
float max_row(const float* s, Int valid, float scale) {
  const Int whole = padded(valid);
  float top = s[0];
#pragma omp simd reduction(max : top)
  for (Int j = 0; j < whole; ++j) top = top > s[j] ? top : s[j];
  return scale * top;
}

// Sets keep[0, keys) to all ones for the elements of row i that dropout keeps, and to 0 for the
// others. Words after them, up to a whole number of vectors, are unspecified.
void kept_of_row(const ScoreDropout& drop, Int i, Int keys, std::uint32_t* keep) {
  const Int run = 4 * kWideLanes, count = (keys + run - 1) / run * run;
  philox(drop.rule, drop.sample, drop.first + static_cast<std::uint32_t>(i) * drop.row, count / 4,
         keep);
  const std::uint32_t threshold = drop.rule.threshold;
#pragma omp simd
  for (Int j = 0; j < count; ++j) keep[j] = keep[j] < threshold ? 0U : ~0U;
}

// Converts gradients of the kept probabilities to gradients of all probabilities.
void drop_grads(const std::uint32_t* keep, float scale, Int keys, float* dp) {
#pragma omp simd
  for (Int j = 0; j < keys; ++j) dp[j] = keep[j] != 0 ? scale * dp[j] : 0.0F;
}

template <class T>
float dot(const T* a, const T* b, Int n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int j = 0; j < n; ++j) sum += to_float(a[j]) * to_float(b[j]);
  return sum;
}

}  // namespace
}  // namespace concertina::cpu
