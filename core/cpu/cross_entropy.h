// Softmax cross-entropy for the instruction set that this file is compiled for. Included by
// loops.cc alone.
#pragma once

#include "core/cpu/kernels.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

template <class T>
float cross_entropy_row(T* logits, std::int64_t v, std::int64_t target, float scale,
                        bool training) {
  if (target < 0) {
    if (training)
      for (std::int64_t i = 0; i < v; ++i) logits[i] = rounded<T>(0);
    return 0;
  }
  const float right = to_float(logits[target]);
  float top = right, sum = 0;
#pragma omp simd reduction(max : top)
  for (std::int64_t i = 0; i < v; ++i) top = top > to_float(logits[i]) ? top : to_float(logits[i]);
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < v; ++i) sum += exp_nonpositive(to_float(logits[i]) - top);
  const float loss = top + __builtin_logf(sum) - right;
  if (training) {
    const float factor = scale / sum;
#pragma omp simd
    for (std::int64_t i = 0; i < v; ++i)
      logits[i] = rounded<T>(factor * exp_nonpositive(to_float(logits[i]) - top));
    logits[target] = rounded<T>(factor * exp_nonpositive(right - top) - scale);
  }
  return loss;
}

inline constexpr std::int64_t kSpanLanes = 16;  // every other one of them is of the starts

/// f(i, lane) for all i < n.
template <class F>
[[gnu::always_inline]] inline void in_span_lanes(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kSpanLanes <= n; i += kSpanLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kSpanLanes; ++lane) f(i + lane, lane);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) f(i, lane);
}

/// Starts and ends lie side by side, so that lanes keep maxima and sums of one of them.
template <class T>
float span_cross_entropy(T* logits, std::int64_t t, std::int64_t start, std::int64_t end,
                         float scale, bool training) {
  const std::int64_t targets[2] = {start, end};
  float top[kSpanLanes], sum[kSpanLanes] = {}, factor[kSpanLanes], right[2] = {}, loss = 0;
  bool valid[2];
  for (std::int64_t lane = 0; lane < kSpanLanes; ++lane) top[lane] = to_float(logits[lane % 2]);
  in_span_lanes(2 * t, [&](std::int64_t i, std::int64_t lane) {
    const float x = to_float(logits[i]);
    top[lane] = top[lane] > x ? top[lane] : x;
  });
  for (std::int64_t lane = 2; lane < kSpanLanes; ++lane)
    top[lane % 2] = top[lane % 2] > top[lane] ? top[lane % 2] : top[lane];
  for (std::int64_t lane = 2; lane < kSpanLanes; ++lane) top[lane] = top[lane % 2];
  in_span_lanes(2 * t, [&](std::int64_t i, std::int64_t lane) {
    sum[lane] += exp_nonpositive(to_float(logits[i]) - top[lane]);
  });
  for (std::int64_t lane = 2; lane < kSpanLanes; ++lane) sum[lane % 2] += sum[lane];
  for (std::int64_t side = 0; side < 2; ++side) {
    const std::int64_t target = targets[side];
    valid[side] = target >= 0 && target < t;
    if (valid[side]) {
      right[side] = to_float(logits[2 * target + side]);
      loss += top[side] + __builtin_logf(sum[side]) - right[side];
    }
  }
  if (!training) return 0.5F * loss;
  for (std::int64_t lane = 0; lane < kSpanLanes; ++lane)
    factor[lane] = valid[lane % 2] ? 0.5F * scale / sum[lane % 2] : 0;
  in_span_lanes(2 * t, [&](std::int64_t i, std::int64_t lane) {
    logits[i] = rounded<T>(factor[lane] * exp_nonpositive(to_float(logits[i]) - top[lane]));
  });
  for (std::int64_t side = 0; side < 2; ++side)
    if (valid[side])
      logits[2 * targets[side] + side] =
          rounded<T>(factor[side] * exp_nonpositive(right[side] - top[side]) - 0.5F * scale);
  return 0.5F * loss;
}

}  // namespace
}  // namespace concertina::cpu
