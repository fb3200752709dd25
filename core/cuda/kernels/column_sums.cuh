// Sums over the rows of a matrix in two stages: each block sums a run of rows into scratch, then
// one thread per column adds the runs in order.
// Invariant: the runs, and therefore the bits, depend only on the numbers of rows and columns.
//
// Dimensions: R rows, C columns, S runs of rows, K sums per column.
#pragma once

#include <algorithm>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {

inline constexpr unsigned kSumLanes = 32;  // threads along columns, N columns each
inline constexpr unsigned kSumRows = 8;    // threads along rows
inline constexpr Int kLeastRun = 64;       // minimum run (except the last one): amortizes stage two
inline constexpr Int kMostRuns = 128;      // enough blocks to fill a GPU with one tile of columns

/// Returns the number of rows per run, for as many runs as are useful and fit into scratch.
inline Int run_length(Int rows, Int columns, int sums) {
  const auto fit = static_cast<Int>(kScratchBytes / sizeof(float)) / (columns * sums);
  const Int runs = std::clamp<Int>(fit, 1, kMostRuns);
  return std::max(kLeastRun, (rows + runs - 1) / runs);
}

/// partial[S,K,C]: term(row, column, v) writes the terms of N columns from `column` to v[K][N].
template <int K, int N, class Term>
__global__ void __launch_bounds__(kSumLanes* kSumRows)
    sum_runs(Term term, Int rows, Int columns, Int run, float* partial) {
  __shared__ float below[kSumRows][kSumLanes][K * N + 1];
  const unsigned lane = threadIdx.x % kSumLanes, y = threadIdx.x / kSumLanes;
  const Int column = (static_cast<Int>(blockIdx.x) * kSumLanes + lane) * N;
  const Int first = static_cast<Int>(blockIdx.y) * run, end = min(first + run, rows);
  float sum[K][N] = {};
  if (column < columns) {
#pragma unroll 4
    for (Int row = first + y; row < end; row += kSumRows) {
      float v[K][N];
      term(row, column, v);
#pragma unroll
      for (int k = 0; k < K; ++k)
#pragma unroll
        for (int i = 0; i < N; ++i) sum[k][i] += v[k][i];
    }
  }
#pragma unroll
  for (int i = 0; i < K * N; ++i) below[y][lane][i] = sum[i / N][i % N];
  __syncthreads();
  if (y != 0 || column >= columns) return;
#pragma unroll
  for (int i = 0; i < K * N; ++i) {
    float total = 0;
    for (unsigned row = 0; row < kSumRows; ++row) total += below[row][lane][i];
    partial[(static_cast<Int>(blockIdx.y) * K + i / N) * columns + column + i % N] = total;
  }
}

/// to[k][C] = (accumulate ? old : 0) + the runs in order.
template <int K>
struct ColumnResults {
  float* to[K];
};
template <int K>
__global__ void add_runs(const float* partial, Int runs, Int columns, ColumnResults<K> results,
                         bool accumulate) {
  const Int column = static_cast<Int>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    float sum = 0;
#pragma unroll 16
    for (Int run = 0; run < runs; ++run) sum += partial[(run * K + k) * columns + column];
    float* to = results.to[k] + column;
    *to = accumulate ? *to + sum : sum;
  }
}

inline constexpr unsigned kSampleThreads = 256;

/// to[columns] = (accumulate ? old : 0) + the sum of x[s,column] over rows s, in order. For few
/// rows and many columns: one thread per N columns. x has `count` elements, and `stride` per row.
template <class T, int N>
__global__ void __launch_bounds__(kSampleThreads)
    sum_samples(const T* x, float* to, Int columns, Int stride, Int count, bool accumulate) {
  const Int at = (static_cast<Int>(blockIdx.x) * kSampleThreads + threadIdx.x) * N;
  if (at >= columns) return;
  float sum[N] = {}, g[N];
  if (accumulate) load(to + at, sum);
  for (Int i = at; i < count; i += stride) {
    load(x + i, g);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += g[k];
  }
  store(to + at, sum);
}

template <int K, int N, class Term>
void sum_columns(const char* name, cudaStream_t stream, Term term, Int rows, Int columns,
                 ColumnResults<K> results, bool accumulate, void* scratch) {
  const Int run = run_length(rows, columns, K);
  const unsigned runs = blocks_for(rows, run);
  check_scratch(sizeof(float) * static_cast<std::size_t>(runs * K * columns), kScratchBytes, name);
  auto* partial = static_cast<float*>(scratch);
  launch(name, {dim3(blocks_for(columns, kSumLanes * N), runs), kSumLanes * kSumRows}, stream,
         sum_runs<K, N, Term>, term, rows, columns, run, partial);
  launch(name, {dim3(blocks_for(columns, 128)), 128}, stream, add_runs<K>, partial, Int{runs},
         columns, results, accumulate);
}

}  // namespace concertina::cuda
