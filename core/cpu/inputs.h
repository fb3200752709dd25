// How models begin, tables of tokens and patches of images, for the instruction set that this file
// is compiled for. Included by loops.cc alone.
#pragma once

#include "core/cpu/kernels.h"

namespace concertina::cpu {
namespace {

template <class T>
void embed(const float* token, const float* type, const float* position, T* y, std::int64_t n) {
  if (type != nullptr && position != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(token[i] + type[i] + position[i]);
  } else if (type != nullptr || position != nullptr) {
    const float* other = position != nullptr ? position : type;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(token[i] + other[i]);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(token[i]);
  }
}

template <class T>
void add(const T* a, const float* b, T* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(to_float(a[i]) + b[i]);
}

template <class T>
void accumulate(const T* x, float* a, float* b, float* c, std::int64_t n) {
  if (b == nullptr) b = c, c = nullptr;
  if (c != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = to_float(x[i]);
      a[i] += v;
      b[i] += v;
      c[i] += v;
    }
  } else if (b != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = to_float(x[i]);
      a[i] += v;
      b[i] += v;
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) a[i] += to_float(x[i]);
  }
}

/// kPatch pixels a patch's side, known to the compiler; 0: shape.patch.
template <int kPatch, class T>
void patches_of(const float* image, const ImageShape& shape, T* to) {
  const std::int64_t p = kPatch == 0 ? shape.patch : kPatch;
  const std::int64_t columns = shape.width / p, stride = shape.channels * p * p;
  for (std::int64_t c = 0; c < shape.channels; ++c)
    for (std::int64_t y = 0; y < p; ++y) {
      const float* from = image + (c * shape.height + y) * shape.width;
      T* row = to + (c * p + y) * p;
      for (std::int64_t column = 0; column < columns; ++column, from += p, row += stride) {
#pragma omp simd
        for (std::int64_t x = 0; x < p; ++x) row[x] = rounded<T>(from[x]);
      }
    }
}

template <class T>
void patches(const float* image, const ImageShape& shape, T* to) {
  switch (shape.patch) {
    case 4:
      return patches_of<4>(image, shape, to);
    case 7:
      return patches_of<7>(image, shape, to);
    case 8:
      return patches_of<8>(image, shape, to);
    case 14:
      return patches_of<14>(image, shape, to);
    case 16:
      return patches_of<16>(image, shape, to);
    default:
      return patches_of<0>(image, shape, to);
  }
}

}  // namespace
}  // namespace concertina::cpu
