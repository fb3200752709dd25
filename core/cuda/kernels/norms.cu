// Layer norm (Ba et al. 2016) and, if not centered, RMS norm (Zhang & Sennrich 2019): one block per
// row. A row is read two or three times, and stays in L1. Statistics are fp32.
//
// Dimensions: R rows, C width; T is the type of the activations, N their number per access.
#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

template <class T, int N, bool kCentered>
__global__ void normalize(const T* x, const float* gamma, const float* beta, float eps, T* y,
                          float* mean, float* rstd, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  x += row * c, y += row * c;
  float v[N], scale[N], square[1] = {}, m = 0;
  if constexpr (kCentered) {
    float sum[1] = {};
    for (Int i = first; i < c; i += step) {
      load(x + i, v);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[0] += v[k];
    }
    block_sum(sum);
    m = sum[0] / static_cast<float>(c);
  }
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) square[0] += (v[k] - m) * (v[k] - m);
  }
  block_sum(square);
  const float s = 1.0F / sqrtf(square[0] / static_cast<float>(c) + eps);
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
    load(gamma + i, scale);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = (v[k] - m) * s * scale[k];
    if constexpr (kCentered) {
      float shift[N];
      load(beta + i, shift);
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] += shift[k];
    }
    store(y + i, v);
  }
  if (threadIdx.x != 0) return;
  if (kCentered) mean[row] = m;
  rstd[row] = s;
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma; without mean(g) if not centered. dx
// may alias dy or residual: a thread writes at the end, to elements that no other thread reads.
template <class T, int N, bool kCentered>
__global__ void backward_input(const T* dy, const T* x, const float* gamma, const float* mean,
                               const float* rstd, const T* residual, T* dx, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  const float m = kCentered ? mean[row] : 0, s = rstd[row];
  dy += row * c, x += row * c, dx += row * c;
  constexpr int kDot = kCentered ? 1 : 0;
  float g[N], v[N], scale[N], sums[kDot + 1] = {};  // sums of g (centered), g (x - m)
  for (Int i = first; i < c; i += step) {
    load(dy + i, g);
    load(x + i, v);
    load(gamma + i, scale);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      g[k] *= scale[k];
      if constexpr (kCentered) sums[0] += g[k];
      sums[kDot] += g[k] * (v[k] - m);
    }
  }
  block_sum(sums);
  const float a = kCentered ? sums[0] / static_cast<float>(c) : 0;
  const float b = sums[kDot] * s * s / static_cast<float>(c);
  for (Int i = first; i < c; i += step) {
    float skip[N] = {};
    load(dy + i, g);
    load(x + i, v);
    load(gamma + i, scale);
    if (residual != nullptr) load(residual + row * c + i, skip);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = skip[k] + s * (g[k] * scale[k] - a - (v[k] - m) * b);
    store(dx + i, v);
  }
}

/// Terms of dgamma and, if K is 2, dbeta.
template <class T, int K, int N>
struct WeightTerms {
  const T *dy, *x;
  const float *mean, *rstd;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[K][N]) const {
    float in[N];
    load(dy + row * columns + column, v[K - 1]);
    load(x + row * columns + column, in);
    const float m = K == 2 ? mean[row] : 0, s = rstd[row];
#pragma unroll
    for (int k = 0; k < N; ++k) v[0][k] = v[K - 1][k] * ((in[k] - m) * s);
  }
};

template <bool kCentered>
void run_norm(cudaStream_t stream, const NormForward<kCentered>& op) {
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.gamma.count);
  with_access(op.x.dtype, c, {op.x, op.gamma, op.beta, op.y}, [&]<class T, int N>() {
    launch(op.kName.data(), rows_grid(rows, c, N), stream, normalize<T, N, kCentered>,
           op.x.template as<T>(), op.gamma.f32(), op.beta.f32(), op.eps, op.y.template as<T>(),
           op.mean.f32(), op.rstd.f32(), c);
  });
}

template <bool kCentered>
void run_norm(cudaStream_t stream, const NormInput<kCentered>& op) {
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.gamma.count);
  with_access(
      op.x.dtype, c, {op.dy, op.x, op.gamma, op.residual_grad, op.dx}, [&]<class T, int N>() {
        launch(op.kName.data(), rows_grid(rows, c, N), stream, backward_input<T, N, kCentered>,
               op.dy.template as<T>(), op.x.template as<T>(), op.gamma.f32(), op.mean.f32(),
               op.rstd.f32(), op.residual_grad.template as<T>(), op.dx.template as<T>(), c);
      });
}

template <bool kCentered>
void run_norm(cudaStream_t stream, const NormWeight<kCentered>& op, void* scratch) {
  constexpr int K = kCentered ? 2 : 1;
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.dgamma.count);
  ColumnResults<K> results{{op.dgamma.f32()}};
  if constexpr (kCentered) results.to[1] = op.dbeta.f32();
  with_access(op.x.dtype, c, {op.dy, op.x}, [&]<class T, int N>() {
    sum_columns<K, N>(op.kName.data(), stream,
                      WeightTerms<T, K, N>{op.dy.template as<T>(), op.x.template as<T>(),
                                           op.mean.f32(), op.rstd.f32(), c},
                      rows, c, results, op.accumulate, scratch);
  });
}

}  // namespace

void run(cudaStream_t stream, const LayerNorm& op, void* /*scratch*/) {
  run_norm(stream, op);
}
void run(cudaStream_t stream, const RmsNorm& op, void* /*scratch*/) {
  run_norm(stream, op);
}
void run(cudaStream_t stream, const LayerNormInput& op, void* /*scratch*/) {
  run_norm(stream, op);
}
void run(cudaStream_t stream, const RmsNormInput& op, void* /*scratch*/) {
  run_norm(stream, op);
}
void run(cudaStream_t stream, const LayerNormWeight& op, void* scratch) {
  run_norm(stream, op, scratch);
}
void run(cudaStream_t stream, const RmsNormWeight& op, void* scratch) {
  run_norm(stream, op, scratch);
}

}  // namespace concertina::cuda
