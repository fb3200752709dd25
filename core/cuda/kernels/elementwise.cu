// Loops over flat buffers: gradient sums, norms, casts.
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

struct AxpbyElement {
  static constexpr int kMost = 4;
  float a, b;
  const float* x;
  float* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float u[N], v[N];
    load(x + i, u);
    load(y + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = a * u[k] + b * v[k];
    store(y + i, v);
  }
};

template <class T>
struct Cast {
  static constexpr int kMost = 16 / sizeof(T);
  const float* x;
  T* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N];
    load(x + i, v);
    store(y + i, v);
  }
};

template <class T>
struct AddBias {
  static constexpr int kMost = 1;  // for the widths that products refuse to do it for
  const float* bias;
  T* y;
  Int columns;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[1];
    load(y + i, v);
    v[0] += bias[i % columns];
    store(y + i, v);
  }
};

__global__ void __launch_bounds__(kElementThreads)
    block_squares(const float* x, Int count, Int block, bool aligned, double* sums) {
  const Int begin = static_cast<Int>(blockIdx.x) * block, end = min(begin + block, count);
  double sum[1] = {};
  if (aligned) {
    for (Int i = begin + Int{threadIdx.x} * 4; i < end; i += Int{kElementThreads} * 4) {
      float v[4];
      if (i + 4 <= end) {
        load(x + i, v);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = i + k < end ? x[i + k] : 0;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) sum[0] += static_cast<double>(v[k]) * static_cast<double>(v[k]);
    }
  } else {
    for (Int i = begin + threadIdx.x; i < end; i += kElementThreads)
      sum[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum[0];
}

}  // namespace

void run(cudaStream_t stream, const Axpby& op, void* /*scratch*/) {
  over("axpby", stream, static_cast<Int>(op.y.count), aligned({op.x, op.y}),
       AxpbyElement{op.a, op.b, op.x.f32(), op.y.f32()});
}

void cast(cudaStream_t stream, View x, View y) {
  with_type(y.dtype, [&]<class T>() {
    over("cast", stream, static_cast<Int>(y.count), aligned({x, y}), Cast<T>{x.f32(), y.as<T>()});
  });
}

void add_bias(cudaStream_t stream, View bias, View y) {
  with_type(y.dtype, [&]<class T>() {
    over("add bias", stream, static_cast<Int>(y.count), false,
         AddBias<T>{bias.f32(), y.as<T>(), static_cast<Int>(bias.count)});
  });
}

void run(cudaStream_t stream, const SumSquares& op, double* sums) {
  if (op.x.count == 0) return;
  const auto length = static_cast<Int>(op.block);
  launch("sum of squares",
         {dim3(blocks_for(static_cast<Int>(op.x.count), length)), kElementThreads}, stream,
         block_squares, op.x.f32(), static_cast<Int>(op.x.count), length,
         aligned({op.x}) && length % 4 == 0, sums);
}

}  // namespace concertina::cuda
