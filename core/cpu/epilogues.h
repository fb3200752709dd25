// Loops around products: epilogues, bias gradients, conversion from and rounding to bf16.
#pragma once

#define CONCERTINA_EPILOGUE_LOOPS(TYPED, FP32)                                                    \
  TYPED(void, bias_residual,                                                                      \
        (const float* u, const float* bias, const T* residual, T* y, Int rows, Int n))            \
  TYPED(void, multiply, (const float* u, const T* x, T* y, Int count))                            \
  TYPED(void, column_sum, (const T* a, Int rows, Int stride, Int n, float* out, bool accumulate)) \
  FP32(void, widen, (const Bf16* x, float* y, Int n))                                             \
  FP32(void, cut, (float* x, Int n))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// y[rows,n] = u[rows,n] + bias[n] + residual[rows,n]; bias and residual may be null.
template <class T>
void bias_residual(const float* u, const float* bias, const T* residual, T* y, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, u += n, y += n) {
    if (bias != nullptr && residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + (bias[i] + to_float(residual[i])));
      residual += n;
    } else if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + to_float(residual[i]));
      residual += n;
    } else if (bias != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + bias[i]);
    } else {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i]);
    }
  }
}

/// y = u x.
template <class T>
void multiply(const float* u, const T* x, T* y, Int count) {
#pragma omp simd
  for (Int i = 0; i < count; ++i) y[i] = rounded<T>(u[i] * to_float(x[i]));
}

/// out[n] = (accumulate ? out : 0) + column sums of a[rows,stride], with rows in order. Four rows
/// per pass need a quarter of the loads and stores of `out`, and a shorter chain of roundings.
template <class T>
void column_sum(const T* a, Int rows, Int stride, Int n, float* out, bool accumulate) {
  if (!accumulate) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] = 0;
  }
  Int r = 0;
  for (; r + 4 <= rows; r += 4, a += 4 * stride) {
    const T *a1 = a + stride, *a2 = a1 + stride, *a3 = a2 + stride;
#pragma omp simd
    for (Int i = 0; i < n; ++i)
      out[i] += (to_float(a[i]) + to_float(a1[i])) + (to_float(a2[i]) + to_float(a3[i]));
  }
  for (; r < rows; ++r, a += stride) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] += to_float(a[i]);
  }
}

/// y = x.
void widen(const Bf16* x, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = to_float(x[i]);
}

/// Rounds x to bf16 in place.
void cut(float* x, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) x[i] = to_float(rounded<Bf16>(x[i]));
}

}  // namespace
}  // namespace concertina::cpu

#endif
