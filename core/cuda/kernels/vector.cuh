// Loads and stores of N elements at once as floats, 16 bytes if N is large enough.
// Invariant: for N > 1, the address is a multiple of the size of N elements (at most 16 bytes).
#pragma once

#include <cuda_runtime.h>

#include "core/cuda/kernels/ptx.cuh"
#include "core/tensor.h"

namespace concertina::cuda {

template <int N>
__device__ inline void load(const float* from, float (&to)[N]) {
  if constexpr (N == 1) {
    to[0] = *from;
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 x = *reinterpret_cast<const float4*>(from + i);
      to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
    }
  }
}

template <int N>
__device__ inline void load(const Bf16* from, float (&to)[N]) {
  if constexpr (N == 1) {
    to[0] = low_bf16(from->bits);
  } else {
    static_assert(N == 8);
    const uint4 x = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) to[2 * i] = low_bf16(words[i]), to[2 * i + 1] = high_bf16(words[i]);
  }
}

template <int N>
__device__ inline void store(float* to, const float (&from)[N]) {
  if constexpr (N == 1) {
    *to = from[0];
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4)
      *reinterpret_cast<float4*>(to + i) =
          make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  }
}

template <int N>
__device__ inline void store(Bf16* to, const float (&from)[N]) {
  if constexpr (N == 1) {
    to->bits = static_cast<unsigned short>(pack_bf16(from[0], 0));
  } else {
    static_assert(N == 8);
    *reinterpret_cast<uint4*>(to) =
        make_uint4(pack_bf16(from[0], from[1]), pack_bf16(from[2], from[3]),
                   pack_bf16(from[4], from[5]), pack_bf16(from[6], from[7]));
  }
}

}  // namespace concertina::cuda
