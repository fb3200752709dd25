// Rotary position embedding (Su et al. 2021) for the instruction set that this file is compiled
// for. Included by loops.cc alone.
#pragma once

#include "core/cpu/kernels.h"

namespace concertina::cpu {
namespace {

template <class T>
void rotate(T* x, const float* table, std::int64_t heads, std::int64_t d, bool inverse) {
  const std::int64_t half = d / 2;
  const float *cosines = table, *sines = table + half;
  const float sign = inverse ? -1.0F : 1.0F;
  for (std::int64_t head = 0; head < heads; ++head, x += d) {
    T *low = x, *high = x + half;
#pragma omp simd
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = to_float(low[i]), b = to_float(high[i]);
      const float cosine = cosines[i], sine = sign * sines[i];
      low[i] = rounded<T>(a * cosine - b * sine);
      high[i] = rounded<T>(b * cosine + a * sine);
    }
  }
}

}  // namespace
}  // namespace concertina::cpu
