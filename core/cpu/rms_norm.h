// RMS norm (Zhang & Sennrich 2019) for the instruction set that this file is compiled for. Included
// by loops.cc alone.
#pragma once

#include "core/cpu/kernels.h"

namespace concertina::cpu {
namespace {

template <class T>
void rms_norm(const T* x, const float* gamma, float eps, T* y, float* rstd, std::int64_t rows,
              std::int64_t c) {
  const std::int64_t half = c / 2;  // two sums a row: half as long a chain of additions
  for (std::int64_t r = 0; r < rows; ++r, x += c, y += c) {
    float square = c % 2 == 0 ? 0 : to_float(x[c - 1]) * to_float(x[c - 1]), upper = 0;
#pragma omp simd reduction(+ : square, upper)
    for (std::int64_t i = 0; i < half; ++i) {
      square += to_float(x[i]) * to_float(x[i]);
      upper += to_float(x[half + i]) * to_float(x[half + i]);
    }
    square += upper;
    const float s = 1.0F / __builtin_sqrtf(square / static_cast<float>(c) + eps);
#pragma omp simd
    for (std::int64_t i = 0; i < c; ++i) y[i] = rounded<T>(to_float(x[i]) * s * gamma[i]);
    rstd[r] = s;
  }
}

// dx = rstd (g - xhat mean(g xhat)), g = dy gamma, xhat = x rstd.
template <class T>
void rms_norm_backward_input(const T* dy, const T* x, const float* gamma, const float* rstd,
                             const T* residual, T* dx, std::int64_t rows, std::int64_t c) {
  for (std::int64_t r = 0; r < rows; ++r, dy += c, x += c, dx += c) {
    const float s = rstd[r];
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < c; ++i) dot += to_float(dy[i]) * gamma[i] * to_float(x[i]);
    const float b = dot * s * s / static_cast<float>(c);
    if (residual != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < c; ++i)
        dx[i] = rounded<T>(to_float(residual[i]) +
                           s * (to_float(dy[i]) * gamma[i] - to_float(x[i]) * b));
      residual += c;
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < c; ++i)
        dx[i] = rounded<T>(s * (to_float(dy[i]) * gamma[i] - to_float(x[i]) * b));
    }
  }
}

// Columns [0, n) of rows with stride c, four rows a pass.
template <class T>
void rms_norm_backward_weight(const T* dy, const T* x, const float* rstd, float* dgamma,
                              std::int64_t rows, std::int64_t c, std::int64_t n, bool accumulate) {
  for (std::int64_t i = 0; !accumulate && i < n; ++i) dgamma[i] = 0;
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, dy += 4 * c, x += 4 * c) {
    const float s0 = rstd[r], s1 = rstd[r + 1], s2 = rstd[r + 2], s3 = rstd[r + 3];
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
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
    for (std::int64_t i = 0; i < n; ++i) dgamma[i] += to_float(dy[i]) * (to_float(x[i]) * s);
  }
}

}  // namespace
}  // namespace concertina::cpu
