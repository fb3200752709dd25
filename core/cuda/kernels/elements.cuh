// Loops over flat buffers.
//
// There are N elements per access: 16 bytes if every buffer is aligned to that. The first threads
// of the grid process the elements after the last whole access one by one.
#pragma once

#include <utility>

#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {

inline constexpr unsigned kElementThreads = 256;

/// A grid with one thread per access to n of the `count` elements, and a thread's first element.
inline Grid elements_grid(Int count, int n) {
  return {dim3(blocks_for(count, Int{kElementThreads} * n)), kElementThreads};
}
template <int N>
__device__ inline Int first_element() {
  return (static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x) * N;
}

/// Calls f.template operator()<N>(i) for each access of the calling thread.
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

/// Runs f over `count` elements, F::kMost per access if its buffers are aligned.
template <class F>
void over(const char* name, cudaStream_t stream, Int count, bool aligned, F f) {
  if (count == 0) return;
  constexpr int kMost = F::kMost;
  if (aligned)
    launch(name, elements_grid(count, kMost), stream, each_element<kMost, F>, f, count);
  else
    launch(name, elements_grid(count, 1), stream, each_element<1, F>, f, count);
}

/// Applies `rule` to corresponding elements of K buffers, passed in the order of the buffers. It
/// reads from the first Rule::kRead and writes to the last Rule::kWritten buffers.
template <class T, class Rule, int K>
struct ByElement {
  static constexpr int kMost = 16 / sizeof(T);
  Rule rule;
  T* buffers[K];
  template <int N>
  __device__ void operator()(Int i) const {
    float v[K][N];
#pragma unroll
    for (int b = 0; b < Rule::kRead; ++b) load(buffers[b] + i, v[b]);
#pragma unroll
    for (int k = 0; k < N; ++k) apply(v, k, std::make_integer_sequence<int, K>{});
#pragma unroll
    for (int b = K - Rule::kWritten; b < K; ++b) store(buffers[b] + i, v[b]);
  }
  template <int N, int... B>
  __device__ void apply(float (&v)[K][N], int k, std::integer_sequence<int, B...>) const {
    rule(v[B][k]...);
  }
};

/// Applies `rule` to all elements of `buffers`, which have type T and equal lengths.
template <class T, class Rule, int K>
void by_element(const char* name, cudaStream_t stream, const Rule& rule, const View (&buffers)[K]) {
  ByElement<T, Rule, K> f{rule, {}};
  bool all_aligned = true;
  for (int b = 0; b < K; ++b) {
    f.buffers[b] = buffers[b].template as<T>();
    all_aligned = all_aligned && aligned({buffers[b]});
  }
  over(name, stream, static_cast<Int>(buffers[0].count), all_aligned, f);
}

}  // namespace concertina::cuda
