// Token tables and losses.
#pragma once

#define CONCERTINA_VOCABULARY_LOOPS(TYPED, FP32)                                                  \
  TYPED(void, embed, (const float* token, const float* type, const float* position, T* y, Int n)) \
  TYPED(void, accumulate, (const T* x, float* a, float* b, float* c, Int n))                      \
  TYPED(float, cross_entropy_row,                                                                 \
        (T * logits, Int v, Int target, float scale, float smoothing, bool training))             \
  TYPED(float, span_cross_entropy,                                                                \
        (T * logits, Int t, Int start, Int end, float scale, float smoothing, bool training))     \
  TYPED(float, score_loss_row,                                                                    \
        (T * logits, const float* scores, Int k, bool binary, float scale, bool training))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"
#include "core/model/batch.h"

namespace concertina::cpu {
namespace {

/// y[n] = token[n] + type[n] + position[n]; type and position may be null.
template <class T>
void embed(const float* token, const float* type, const float* position, T* y, Int n) {
  if (type != nullptr && position != nullptr) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) y[i] = rounded<T>(token[i] + type[i] + position[i]);
  } else if (type != nullptr || position != nullptr) {
    const float* other = position != nullptr ? position : type;
#pragma omp simd
    for (Int i = 0; i < n; ++i) y[i] = rounded<T>(token[i] + other[i]);
  } else {
#pragma omp simd
    for (Int i = 0; i < n; ++i) y[i] = rounded<T>(token[i]);
  }
}

/// Adds x[n] to a[n], b[n] and c[n]; b and c may be null.
template <class T>
void accumulate(const T* x, float* a, float* b, float* c, Int n) {
  if (b == nullptr) b = c, c = nullptr;
  if (c != nullptr) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float v = to_float(x[i]);
      a[i] += v;
      b[i] += v;
      c[i] += v;
    }
  } else if (b != nullptr) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float v = to_float(x[i]);
      a[i] += v;
      b[i] += v;
    }
  } else {
#pragma omp simd
    for (Int i = 0; i < n; ++i) a[i] += to_float(x[i]);
  }
}

/// Computes one row of softmax cross-entropy and returns its row_loss.
template <class T>
float cross_entropy_row(T* logits, Int v, Int target, float scale, float smoothing, bool training) {
  if (target < 0) {
    if (training)
      for (Int i = 0; i < v; ++i) logits[i] = rounded<T>(0);
    return 0;
  }
  const float right = to_float(logits[target]);
  float top = right, sum = 0;
#pragma omp simd reduction(max : top)
  for (Int i = 0; i < v; ++i) top = top > to_float(logits[i]) ? top : to_float(logits[i]);
#pragma omp simd reduction(+ : sum)
  for (Int i = 0; i < v; ++i) sum += exp_nonpositive(to_float(logits[i]) - top);
  float loss = top + __builtin_logf(sum) - right;
  if (smoothing > 0) {
    float gain = 0;
#pragma omp simd reduction(+ : gain)
    for (Int i = 0; i < v; ++i) gain += right - to_float(logits[i]);
    loss += smoothing * gain / static_cast<float>(v);
  }
  if (training) {
    const float factor = scale / sum, share = scale * smoothing / static_cast<float>(v);
#pragma omp simd
    for (Int i = 0; i < v; ++i)
      logits[i] = rounded<T>(factor * exp_nonpositive(to_float(logits[i]) - top) - share);
    logits[target] =
        rounded<T>(factor * exp_nonpositive(right - top) - (scale - scale * smoothing + share));
  }
  return loss;
}

inline constexpr Int kSpanLanes = 16;  // alternating between starts and ends

/// Calls f(i, lane) for all i < n.
template <class F>
[[gnu::always_inline]] inline void in_span_lanes(Int n, F f) {
  Int i = 0;
  for (; i + kSpanLanes <= n; i += kSpanLanes) {
#pragma omp simd
    for (Int lane = 0; lane < kSpanLanes; ++lane) f(i + lane, lane);
  }
  for (Int lane = 0; i < n; ++i, ++lane) f(i, lane);
}

/// Computes the loss of one sample's logits[t,2] and returns its row_loss. Starts and ends
/// alternate, so each lane keeps the maximum and sum of one of them.
template <class T>
float span_cross_entropy(T* logits, Int t, Int start, Int end, float scale, float smoothing,
                         bool training) {
  const Int targets[2] = {start, end};
  float top[kSpanLanes], sum[kSpanLanes] = {}, factor[kSpanLanes], right[2] = {}, loss = 0;
  bool valid[2];
  for (Int lane = 0; lane < kSpanLanes; ++lane) top[lane] = to_float(logits[lane % 2]);
  in_span_lanes(2 * t, [&](Int i, Int lane) {
    const float x = to_float(logits[i]);
    top[lane] = top[lane] > x ? top[lane] : x;
  });
  for (Int lane = 2; lane < kSpanLanes; ++lane)
    top[lane % 2] = top[lane % 2] > top[lane] ? top[lane % 2] : top[lane];
  for (Int lane = 2; lane < kSpanLanes; ++lane) top[lane] = top[lane % 2];
  in_span_lanes(2 * t, [&](Int i, Int lane) {
    sum[lane] += exp_nonpositive(to_float(logits[i]) - top[lane]);
  });
  for (Int lane = 2; lane < kSpanLanes; ++lane) sum[lane % 2] += sum[lane];
  for (Int side = 0; side < 2; ++side) {
    const Int target = targets[side];
    valid[side] = target >= 0 && target < t;
    if (valid[side]) {
      right[side] = to_float(logits[2 * target + side]);
      loss += top[side] + __builtin_logf(sum[side]) - right[side];
    }
  }
  if (smoothing > 0)
    for (Int side = 0; side < 2; ++side) {
      float gain = 0;
      for (Int i = 0; valid[side] && i < t; ++i)
        gain += right[side] - to_float(logits[2 * i + side]);
      loss += smoothing * gain / static_cast<float>(t);
    }
  if (!training) return 0.5F * loss;
  const float half = 0.5F * scale, even = half * smoothing / static_cast<float>(t);
  float share[kSpanLanes];
  for (Int lane = 0; lane < kSpanLanes; ++lane) {
    factor[lane] = valid[lane % 2] ? half / sum[lane % 2] : 0;
    share[lane] = valid[lane % 2] ? even : 0;
  }
  in_span_lanes(2 * t, [&](Int i, Int lane) {
    logits[i] =
        rounded<T>(factor[lane] * exp_nonpositive(to_float(logits[i]) - top[lane]) - share[lane]);
  });
  for (Int side = 0; side < 2; ++side)
    if (valid[side])
      logits[2 * targets[side] + side] =
          rounded<T>(factor[side] * exp_nonpositive(right[side] - top[side]) -
                     (half - half * smoothing + even));
  return 0.5F * loss;
}

/// Computes one row of ScoreLoss and returns its row_loss.
template <class T>
float score_loss_row(T* logits, const float* scores, Int k, bool binary, float scale,
                     bool training) {
  double loss = 0;
  for (Int i = 0; i < k; ++i) {
    const float x = to_float(logits[i]), y = scores[i];
    float gradient = 0;  // for unknown scores
    if (y != kNoScore && binary) {
      const float e = exp_nonpositive(x > 0 ? -x : x), p = (x > 0 ? 1 : e) / (1 + e);
      loss += static_cast<double>((x > 0 ? x : 0) - x * y + __builtin_log1pf(e));
      gradient = p - y;
    } else if (y != kNoScore) {
      loss += static_cast<double>(x - y) * static_cast<double>(x - y);
      gradient = 2 * (x - y);
    }
    if (training) logits[i] = rounded<T>(scale * gradient);
  }
  return static_cast<float>(loss);
}

}  // namespace
}  // namespace concertina::cpu

#endif
