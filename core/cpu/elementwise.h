// Dropout, gradient sums and norms.
#pragma once

#include "core/cpu/dropout_rule.h"

#define CONCERTINA_ELEMENTWISE_LOOPS(TYPED, FP32)                                                 \
  TYPED(void, dropout,                                                                            \
        (const DropoutRule& rule, std::uint32_t sample, Int first, const T* u, const T* residual, \
         T* y, Int n))                                                                            \
  FP32(void, axpby, (float a, const float* x, float b, float* y, Int n))                          \
  FP32(double, sum_squares, (const float* x, Int n))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/philox.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

inline constexpr Int kCounters = 64;  // per block of random words

/// y[n] = residual[n] + the kept part of u[n], for a sample's elements from `first` on; `first` is
/// a multiple of 4. residual may be null; y may alias u.
template <class T>
void dropout(const DropoutRule& rule, std::uint32_t sample, Int first, const T* u,
             const T* residual, T* y, Int n) {
  alignas(64) std::uint32_t words[4 * kCounters];
  const std::uint32_t threshold = rule.threshold;
  const float scale = rule.scale;
  for (Int begin = 0; begin < n; begin += 4 * kCounters) {
    philox(rule, sample, static_cast<std::uint32_t>((first + begin) / 4), kCounters, words);
    const Int count = n - begin < 4 * kCounters ? n - begin : 4 * kCounters;
    const T* from = u + begin;
    T* to = y + begin;
    if (residual == nullptr) {
#pragma omp simd
      for (Int i = 0; i < count; ++i)
        to[i] = rounded<T>(words[i] < threshold ? 0.0F : to_float(from[i]) * scale);
    } else {
      const T* skip = residual + begin;
#pragma omp simd
      for (Int i = 0; i < count; ++i)
        to[i] = rounded<T>(to_float(skip[i]) +
                           (words[i] < threshold ? 0.0F : to_float(from[i]) * scale));
    }
  }
}

/// y = a x + b y.
void axpby(float a, const float* x, float b, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = a * x[i] + b * y[i];
}

double sum_squares(const float* x, Int n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace
}  // namespace concertina::cpu

#endif
