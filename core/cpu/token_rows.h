// Image patches and class tokens.
#pragma once

#include <cstdint>

namespace concertina::cpu {

struct ImageShape {
  std::int64_t channels, height, width, patch;
};

}  // namespace concertina::cpu

#define CONCERTINA_TOKEN_ROW_LOOPS(TYPED, FP32)               \
  TYPED(void, add, (const T* a, const float* b, T* y, Int n)) \
  TYPED(void, patches, (const float* image, const ImageShape& shape, T* to))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// y[n] = a[n] + b[n].
template <class T>
void add(const T* a, const float* b, T* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = rounded<T>(to_float(a[i]) + b[i]);
}

/// kPatch is the side of a patch in pixels, as a compile-time constant; 0 means shape.patch.
template <int kPatch, class T>
void patches_of(const float* image, const ImageShape& shape, T* to) {
  const Int p = kPatch == 0 ? shape.patch : kPatch;
  const Int columns = shape.width / p, stride = shape.channels * p * p;
  for (Int c = 0; c < shape.channels; ++c)
    for (Int y = 0; y < p; ++y) {
      const float* from = image + (c * shape.height + y) * shape.width;
      T* row = to + (c * p + y) * p;
      for (Int column = 0; column < columns; ++column, from += p, row += stride) {
#pragma omp simd
        for (Int x = 0; x < p; ++x) row[x] = rounded<T>(from[x]);
      }
    }
}

/// Computes one row of a sample's patches; `image` points to its first pixel.
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

#endif
