// Loops over flat buffers: gradient sums, norms, the optimizer, casts.
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

/// With the constants of one step.
struct AdamWElement {
  static constexpr int kMost = 4;
  AdamWConstants k;
  float *w, *m, *v;
  const float* g;
  template <int N>
  __device__ void operator()(Int i) const {
    float weight[N], first[N], second[N], grad[N];
    load(w + i, weight);
    load(m + i, first);
    load(v + i, second);
    load(g + i, grad);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float scaled = grad[j] * k.grad_scale;
      first[j] = k.beta1 * first[j] + (1 - k.beta1) * scaled;
      second[j] = k.beta2 * second[j] + (1 - k.beta2) * scaled * scaled;
      const float update = first[j] * k.correction1 / (sqrtf(second[j]) * k.correction2 + k.eps);
      weight[j] = weight[j] - k.decay * weight[j] - k.lr * update;
    }
    store(m + i, first);
    store(v + i, second);
    store(w + i, weight);
  }
};

struct SgdElement {
  static constexpr int kMost = 4;
  SgdRule k;
  float *w, *m;
  const float* g;
  template <int N>
  __device__ void operator()(Int i) const {
    float weight[N], moment[N], grad[N];
    load(w + i, weight);
    load(m + i, moment);
    load(g + i, grad);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float d = k.grad_scale * grad[j] + k.decay * weight[j];
      moment[j] = k.momentum * moment[j] + k.fresh * d;
      weight[j] = weight[j] - k.lr * (k.nesterov ? d + k.momentum * moment[j] : moment[j]);
    }
    store(m + i, moment);
    store(w + i, weight);
  }
};

struct LionElement {
  static constexpr int kMost = 4;
  LionRule k;
  float *w, *m;
  const float* g;
  template <int N>
  __device__ void operator()(Int i) const {
    float weight[N], moment[N], grad[N];
    load(w + i, weight);
    load(m + i, moment);
    load(g + i, grad);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float scaled = k.grad_scale * grad[j];
      const float c = k.beta1 * moment[j] + (1 - k.beta1) * scaled;
      const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : 0.0F;
      moment[j] = k.beta2 * moment[j] + (1 - k.beta2) * scaled;
      weight[j] = weight[j] - k.lr * (sign + k.decay * weight[j]);
    }
    store(m + i, moment);
    store(w + i, weight);
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

void run(cudaStream_t stream, const AdamWUpdate& op, void* /*scratch*/) {
  over("adamw", stream, static_cast<Int>(op.w.count), aligned({op.w, op.m, op.v, op.g}),
       AdamWElement{constants_of(op.rule), op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32()});
}

void run(cudaStream_t stream, const SgdUpdate& op, void* /*scratch*/) {
  over("sgd", stream, static_cast<Int>(op.w.count), aligned({op.w, op.m, op.g}),
       SgdElement{op.rule, op.w.f32(), op.m.f32(), op.g.f32()});
}

void run(cudaStream_t stream, const LionUpdate& op, void* /*scratch*/) {
  over("lion", stream, static_cast<Int>(op.w.count), aligned({op.w, op.m, op.g}),
       LionElement{op.rule, op.w.f32(), op.m.f32(), op.g.f32()});
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
