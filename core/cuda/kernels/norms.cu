// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019): one block a row. A row is read
// twice or three times; it is still in L1 then. Statistics are fp32.
//
// Legend: R rows, C width; T type of the activations, N of them an access.
#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

template <class T, int N>
__global__ void normalize(const T* x, const float* gamma, const float* beta, float eps, T* y,
                          float* mean, float* rstd, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  x += row * c, y += row * c;
  float v[N], sum[1] = {}, square[1] = {};
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[0] += v[k];
  }
  block_sum(sum);
  const float m = sum[0] / static_cast<float>(c);
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) square[0] += (v[k] - m) * (v[k] - m);
  }
  block_sum(square);
  const float s = 1.0F / sqrtf(square[0] / static_cast<float>(c) + eps);
  for (Int i = first; i < c; i += step) {
    float scale[N], shift[N];
    load(x + i, v);
    load(gamma + i, scale);
    load(beta + i, shift);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = (v[k] - m) * s * scale[k] + shift[k];
    store(y + i, v);
  }
  if (threadIdx.x == 0) mean[row] = m, rstd[row] = s;
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma. dx may be dy or residual: a thread
// writes only elements that no other reads, and after it has read them.
template <class T, int N>
__global__ void backward_input(const T* dy, const T* x, const float* gamma, const float* mean,
                               const float* rstd, const T* residual, T* dx, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  const float m = mean[row], s = rstd[row];
  dy += row * c, x += row * c, dx += row * c;
  float g[N], v[N], scale[N], sums[2] = {};  // of g, of g (x - m)
  for (Int i = first; i < c; i += step) {
    load(dy + i, g);
    load(x + i, v);
    load(gamma + i, scale);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      g[k] *= scale[k];
      sums[0] += g[k];
      sums[1] += g[k] * (v[k] - m);
    }
  }
  block_sum(sums);
  const float a = sums[0] / static_cast<float>(c);
  const float b = sums[1] * s * s / static_cast<float>(c);
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

/// Terms of dgamma and dbeta.
template <class T, int N>
struct WeightTerms {
  const T *dy, *x;
  const float *mean, *rstd;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[2][N]) const {
    float in[N];
    load(dy + row * columns + column, v[1]);
    load(x + row * columns + column, in);
    const float m = mean[row], s = rstd[row];
#pragma unroll
    for (int k = 0; k < N; ++k) v[0][k] = v[1][k] * ((in[k] - m) * s);
  }
};

}  // namespace

void run(cudaStream_t stream, const LayerNorm& op, void* /*scratch*/) {
  const auto rows = static_cast<Int>(op.mean.count), c = static_cast<Int>(op.gamma.count);
  with_access(op.x.dtype, c, {op.x, op.gamma, op.beta, op.y}, [&]<class T, int N>() {
    launch("layer norm", rows_grid(rows, c, N), stream, normalize<T, N>, op.x.as<T>(),
           op.gamma.f32(), op.beta.f32(), op.eps, op.y.as<T>(), op.mean.f32(), op.rstd.f32(), c);
  });
}

void run(cudaStream_t stream, const LayerNormInput& op, void* /*scratch*/) {
  const auto rows = static_cast<Int>(op.mean.count), c = static_cast<Int>(op.gamma.count);
  with_access(op.x.dtype, c, {op.dy, op.x, op.gamma, op.residual_grad, op.dx},
              [&]<class T, int N>() {
                launch("layer norm backward input", rows_grid(rows, c, N), stream,
                       backward_input<T, N>, op.dy.as<T>(), op.x.as<T>(), op.gamma.f32(),
                       op.mean.f32(), op.rstd.f32(), op.residual_grad.as<T>(), op.dx.as<T>(), c);
              });
}

void run(cudaStream_t stream, const LayerNormWeight& op, void* scratch) {
  const auto rows = static_cast<Int>(op.mean.count), c = static_cast<Int>(op.dgamma.count);
  with_access(op.x.dtype, c, {op.dy, op.x}, [&]<class T, int N>() {
    sum_columns<2, N>(
        "layer norm backward weight", stream,
        WeightTerms<T, N>{op.dy.as<T>(), op.x.as<T>(), op.mean.f32(), op.rstd.f32(), c}, rows, c,
        ColumnResults<2>{{op.dgamma.f32(), op.dbeta.f32()}}, op.accumulate, scratch);
  });
}

namespace {

template <class T, int N>
__global__ void rms_normalize(const T* x, const float* gamma, float eps, T* y, float* rstd, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  x += row * c, y += row * c;
  float v[N], scale[N], square[1] = {};
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) square[0] += v[k] * v[k];
  }
  block_sum(square);
  const float s = 1.0F / sqrtf(square[0] / static_cast<float>(c) + eps);
  for (Int i = first; i < c; i += step) {
    load(x + i, v);
    load(gamma + i, scale);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = v[k] * s * scale[k];
    store(y + i, v);
  }
  if (threadIdx.x == 0) rstd[row] = s;
}

// dx = rstd (g - xhat mean(g xhat)), g = dy gamma. dx may be dy or residual: a thread writes only
// elements that no other reads, and after it has read them.
template <class T, int N>
__global__ void rms_backward_input(const T* dy, const T* x, const float* gamma, const float* rstd,
                                   const T* residual, T* dx, Int c) {
  const Int row = blockIdx.x, first = Int{threadIdx.x} * N, step = Int{blockDim.x} * N;
  const float s = rstd[row];
  dy += row * c, x += row * c, dx += row * c;
  float g[N], v[N], scale[N], dot[1] = {};  // of g, x
  for (Int i = first; i < c; i += step) {
    load(dy + i, g);
    load(x + i, v);
    load(gamma + i, scale);
#pragma unroll
    for (int k = 0; k < N; ++k) dot[0] += g[k] * scale[k] * v[k];
  }
  block_sum(dot);
  const float b = dot[0] * s * s / static_cast<float>(c);
  for (Int i = first; i < c; i += step) {
    float skip[N] = {};
    load(dy + i, g);
    load(x + i, v);
    load(gamma + i, scale);
    if (residual != nullptr) load(residual + row * c + i, skip);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = skip[k] + s * (g[k] * scale[k] - v[k] * b);
    store(dx + i, v);
  }
}

/// Terms of dgamma.
template <class T, int N>
struct RmsWeightTerms {
  const T *dy, *x;
  const float* rstd;
  Int columns;
  __device__ void operator()(Int row, Int column, float (&v)[1][N]) const {
    float in[N];
    load(dy + row * columns + column, v[0]);
    load(x + row * columns + column, in);
    const float s = rstd[row];
#pragma unroll
    for (int k = 0; k < N; ++k) v[0][k] *= in[k] * s;
  }
};

}  // namespace

void run(cudaStream_t stream, const RmsNorm& op, void* /*scratch*/) {
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.gamma.count);
  with_access(op.x.dtype, c, {op.x, op.gamma, op.y}, [&]<class T, int N>() {
    launch("rms norm", rows_grid(rows, c, N), stream, rms_normalize<T, N>, op.x.as<T>(),
           op.gamma.f32(), op.eps, op.y.as<T>(), op.rstd.f32(), c);
  });
}

void run(cudaStream_t stream, const RmsNormInput& op, void* /*scratch*/) {
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.gamma.count);
  with_access(op.x.dtype, c, {op.dy, op.x, op.gamma, op.residual_grad, op.dx},
              [&]<class T, int N>() {
                launch("rms norm backward input", rows_grid(rows, c, N), stream,
                       rms_backward_input<T, N>, op.dy.as<T>(), op.x.as<T>(), op.gamma.f32(),
                       op.rstd.f32(), op.residual_grad.as<T>(), op.dx.as<T>(), c);
              });
}

void run(cudaStream_t stream, const RmsNormWeight& op, void* scratch) {
  const auto rows = static_cast<Int>(op.rstd.count), c = static_cast<Int>(op.dgamma.count);
  with_access(op.x.dtype, c, {op.dy, op.x}, [&]<class T, int N>() {
    sum_columns<1, N>("rms norm backward weight", stream,
                      RmsWeightTerms<T, N>{op.dy.as<T>(), op.x.as<T>(), op.rstd.f32(), c}, rows, c,
                      ColumnResults<1>{{op.dgamma.f32()}}, op.accumulate, scratch);
  });
}

}  // namespace concertina::cuda
