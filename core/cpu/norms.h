// Layer norm and RMS norm.
#pragma once

#define CONCERTINA_NORM_LOOPS(TYPED, FP32)                                                         \
  TYPED(void, layer_norm,                                                                          \
        (const T* x, const float* gamma, const float* beta, float eps, T* y, float* mean,          \
         float* rstd, Int rows, Int c))                                                            \
  TYPED(void, layer_norm_backward_input,                                                           \
        (const T* dy, const T* x, const float* gamma, const float* mean, const float* rstd,        \
         const T* residual, T* dx, Int rows, Int c))                                               \
  TYPED(void, layer_norm_backward_weight,                                                          \
        (const T* dy, const T* x, const float* mean, const float* rstd, float* dgamma,             \
         float* dbeta, Int rows, Int c, Int n, bool accumulate))                                   \
  TYPED(void, rms_norm,                                                                            \
        (const T* x, const float* gamma, float eps, T* y, float* rstd, Int rows, Int c))           \
  TYPED(void, rms_norm_backward_input,                                                             \
        (const T* dy, const T* x, const float* gamma, const float* rstd, const T* residual, T* dx, \
         Int rows, Int c))                                                                         \
  TYPED(void, rms_norm_backward_weight,                                                            \
        (const T* dy, const T* x, const float* rstd, float* dgamma, Int rows, Int c, Int n,        \
         bool accumulate))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

template <class T>
void layer_norm(const T* x, const float* gamma, const float* beta, float eps, T* y, float* mean,
                float* rstd, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, x += c, y += c) {
    float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
    for (Int i = 0; i < c; ++i) sum += to_float(x[i]);
    const float m = sum / static_cast<float>(c);
#pragma omp simd reduction(+ : square)
    for (Int i = 0; i < c; ++i) square += (to_float(x[i]) - m) * (to_float(x[i]) - m);
    const float s = 1.0F / __builtin_sqrtf(square / static_cast<float>(c) + eps);
#pragma omp simd
    for (Int i = 0; i < c; ++i) y[i] = rounded<T>((to_float(x[i]) - m) * s * gamma[i] + beta[i]);
    mean[r] = m;
    rstd[r] = s;
  }
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma (Ba et al. 2016).
template <class T>
void layer_norm_backward_input(const T* dy, const T* x, const float* gamma, const float* mean,
                               const float* rstd, const T* residual, T* dx, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, dy += c, x += c, dx += c) {
    const float m = mean[r], s = rstd[r];
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (Int i = 0; i < c; ++i) {
      const float g = to_float(dy[i]) * gamma[i];
      sum += g;
      dot += g * (to_float(x[i]) - m);
    }
    const float a = sum / static_cast<float>(c);
    const float b = dot * s * s / static_cast<float>(c);
    if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(to_float(residual[i]) +
                           s * (to_float(dy[i]) * gamma[i] - a - (to_float(x[i]) - m) * b));
      residual += c;
    } else {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(s * (to_float(dy[i]) * gamma[i] - a - (to_float(x[i]) - m) * b));
    }
  }
}

/// Columns [0, n) of rows with stride c.
template <class T>
void layer_norm_backward_weight(const T* dy, const T* x, const float* mean, const float* rstd,
                                float* dgamma, float* dbeta, Int rows, Int c, Int n,
                                bool accumulate) {
  if (!accumulate) {
    for (Int i = 0; i < n; ++i) dgamma[i] = dbeta[i] = 0;
  }
  Int r = 0;
  for (; r + 2 <= rows; r += 2, dy += 2 * c, x += 2 * c) {
    const float m0 = mean[r], s0 = rstd[r], m1 = mean[r + 1], s1 = rstd[r + 1];
    const T *dy1 = dy + c, *x1 = x + c;
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float g0 = to_float(dy[i]), g1 = to_float(dy1[i]);
      dgamma[i] += g0 * ((to_float(x[i]) - m0) * s0) + g1 * ((to_float(x1[i]) - m1) * s1);
      dbeta[i] += g0 + g1;
    }
  }
  for (; r < rows; ++r) {
    const float m0 = mean[r], s0 = rstd[r];
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      dgamma[i] += to_float(dy[i]) * ((to_float(x[i]) - m0) * s0);
      dbeta[i] += to_float(dy[i]);
    }
  }
}

template <class T>
void rms_norm(const T* x, const float* gamma, float eps, T* y, float* rstd, Int rows, Int c) {
  const Int half = c / 2;  // two sums per row halve the chain of additions
  for (Int r = 0; r < rows; ++r, x += c, y += c) {
    float square = c % 2 == 0 ? 0 : to_float(x[c - 1]) * to_float(x[c - 1]), upper = 0;
#pragma omp simd reduction(+ : square, upper)
    for (Int i = 0; i < half; ++i) {
      square += to_float(x[i]) * to_float(x[i]);
      upper += to_float(x[half + i]) * to_float(x[half + i]);
    }
    square += upper;
    const float s = 1.0F / __builtin_sqrtf(square / static_cast<float>(c) + eps);
#pragma omp simd
    for (Int i = 0; i < c; ++i) y[i] = rounded<T>(to_float(x[i]) * s * gamma[i]);
    rstd[r] = s;
  }
}

// dx = rstd (g - xhat mean(g xhat)), g = dy gamma, xhat = x rstd.
template <class T>
void rms_norm_backward_input(const T* dy, const T* x, const float* gamma, const float* rstd,
                             const T* residual, T* dx, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, dy += c, x += c, dx += c) {
    const float s = rstd[r];
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (Int i = 0; i < c; ++i) dot += to_float(dy[i]) * gamma[i] * to_float(x[i]);
    const float b = dot * s * s / static_cast<float>(c);
    if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(to_float(residual[i]) +
                           s * (to_float(dy[i]) * gamma[i] - to_float(x[i]) * b));
      residual += c;
    } else {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(s * (to_float(dy[i]) * gamma[i] - to_float(x[i]) * b));
    }
  }
}

// Columns [0, n) of rows with stride c, four rows per pass.
template <class T>
void rms_norm_backward_weight(const T* dy, const T* x, const float* rstd, float* dgamma, Int rows,
                              Int c, Int n, bool accumulate) {
  for (Int i = 0; !accumulate && i < n; ++i) dgamma[i] = 0;
  Int r = 0;
  for (; r + 4 <= rows; r += 4, dy += 4 * c, x += 4 * c) {
    const float s0 = rstd[r], s1 = rstd[r + 1], s2 = rstd[r + 2], s3 = rstd[r + 3];
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float low =
          to_float(dy[i]) * (to_float(x[i]) * s0) + to_float(dy[c + i]) * (to_float(x[c + i]) * s1);
      const float high = to_float(dy[2 * c + i]) * (to_float(x[2 * c + i]) * s2) +
                         to_float(dy[3 * c + i]) * (to_float(x[3 * c + i]) * s3);
      dgamma[i] += low + high;
    }
  }
  for (; r < rows; ++r, dy += c, x += c) {
    const float s = rstd[r];
#pragma omp simd
    for (Int i = 0; i < n; ++i) dgamma[i] += to_float(dy[i]) * (to_float(x[i]) * s);
  }
}

}  // namespace
}  // namespace concertina::cpu

#endif
