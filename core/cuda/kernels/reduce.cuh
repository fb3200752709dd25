// Sums and maxima over the threads of a warp or a block.
// Invariant: the order depends only on the number of threads; all threads receive the same bits.
#pragma once

#include <cuda_runtime.h>

namespace concertina::cuda {

inline constexpr unsigned kWarp = 32, kAllLanes = 0xFFFFFFFFU;

template <class T>
__device__ inline T warp_sum(T x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(kAllLanes, x, distance);
  return x;
}

__device__ inline float warp_max(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  return x;
}

/// Sums each element of x over the block.
template <class T, int N>
__device__ inline void block_sum(T (&x)[N]) {
  __shared__ T partial[kWarp][N];
  const unsigned warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    x[i] = warp_sum(x[i]);
    if (threadIdx.x % kWarp == 0) partial[warp][i] = x[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    x[i] = 0;
    for (unsigned w = 0; w < warps; ++w) x[i] += partial[w][i];
  }
  __syncthreads();  // before `partial` is written again
}

/// Returns the largest x in the block.
__device__ inline float block_max(float x) {
  __shared__ float partial[kWarp];
  const unsigned warps = blockDim.x / kWarp;
  x = warp_max(x);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  for (unsigned w = 0; w < warps; ++w) x = fmaxf(x, partial[w]);
  __syncthreads();  // before `partial` is written again
  return x;
}

}  // namespace concertina::cuda
