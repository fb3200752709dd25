// Four floats to four bytes of fp8: an instruction from compute capability 8.9 on.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda/format.h"

namespace concertina::cuda {

template <Format kFormat>
inline constexpr float kMostFp8 = kFormat == Format::e4m3 ? 448.0F : 57344.0F;

/// `a` in the lowest byte; each to the nearest, ties to even; beyond the range: its end; NaN stays.
template <Format kFormat>
__device__ inline std::uint32_t pack_fp8(float a, float b, float c, float d) {
  constexpr auto kKind = kFormat == Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kKind);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kKind);
  return low | high << 16;
}

}  // namespace concertina::cuda
