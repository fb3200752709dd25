// Loops over flat buffers.
//
// N elements an access: 16 bytes where every buffer starts at a multiple of that; the elements
// after the last whole access are done one by one by the first threads of the grid.
#pragma once

#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {

inline constexpr unsigned kElementThreads = 256;

/// f.template operator()<N>(i) for each access of the calling thread.
template <int N, class F>
__global__ void __launch_bounds__(kElementThreads) each_element(F f, Int count) {
  const Int thread = static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x,
            whole = count / N;
  if (thread < whole) f.template operator()<N>(thread * N);
  if constexpr (N > 1) {
    const Int last = whole * N + thread;
    if (last < count) f.template operator()<1>(last);
  }
}

/// Runs f over `count` elements, F::kMost an access where its buffers are aligned.
template <class F>
void over(const char* name, cudaStream_t stream, Int count, bool aligned, F f) {
  if (count == 0) return;
  constexpr int kMost = F::kMost;
  if (aligned)
    launch(name, {dim3(blocks_for(count, kElementThreads * kMost)), kElementThreads}, stream,
           each_element<kMost, F>, f, count);
  else
    launch(name, {dim3(blocks_for(count, kElementThreads)), kElementThreads}, stream,
           each_element<1, F>, f, count);
}

}  // namespace concertina::cuda
