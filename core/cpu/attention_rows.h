// Rows of attention scores; included by the per-ISA sources alone. T is what probabilities are
// stored in: float or Bf16.
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

// Loops over a row run over whole vectors: a remainder in scalar code would cost more than the row.
// Scores that the mask hides in the last vector count as minus infinity.
constexpr float kMasked = -1e30F;

// `end`: of the last vector; all before it is valid.
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

// p[0, valid) = e^(scale s - top), zero up to n; returns the sum. After mask_row().
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

// scale times the largest of s[0, valid). After mask_row().
float max_row(const float* s, Int valid, float scale) {
  const Int whole = padded(valid);
  float top = s[0];
#pragma omp simd reduction(max : top)
  for (Int j = 0; j < whole; ++j) top = top > s[j] ? top : s[j];
  return scale * top;
}

// keep[0, keys) = all ones for what dropout keeps of row i, and 0 for the others; the words after
// them, up to a whole number of vectors, are of no use.
void kept_of_row(const ScoreDropout& drop, Int i, Int keys, std::uint32_t* keep) {
  const Int run = 4 * kWideLanes, count = (keys + run - 1) / run * run;
  philox(drop.rule, drop.sample, drop.first + static_cast<std::uint32_t>(i) * drop.row, count / 4,
         keep);
  const std::uint32_t threshold = drop.rule.threshold;
#pragma omp simd
  for (Int j = 0; j < count; ++j) keep[j] = keep[j] < threshold ? 0U : ~0U;
}

// Gradients of probabilities, of those of what is kept of them.
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
