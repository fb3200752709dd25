// Loops over flat buffers: gradient sums, norms, the optimizer, casts, GELU and its derivative.
//
// N elements an access: 16 bytes where every buffer starts at a multiple of that; the elements
// after the last whole access are done one by one by the first threads of the grid.
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kElementThreads = 256;

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

/// GELU, tanh form (Hendrycks & Gimpel 2016), as u sigmoid(2 z): value and derivative.
__device__ float2 gelu_of(float u) {
  const float k2 = 2 * 0.797884560802865356F, cubic = 0.044715F;
  const float square = u * u, z = k2 * u * (1.0F + cubic * square);
  const float e = expf(-fabsf(z));
  const float s = (z < 0 ? e : 1.0F) / (1.0F + e);
  return make_float2(u * s, s + u * s * (1.0F - s) * k2 * (1.0F + 3.0F * cubic * square));
}

template <class T>
struct Gelu {
  static constexpr int kMost = 16 / sizeof(T);
  const T* u;
  T* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N];
    load(u + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = gelu_of(v[k]).x;
    store(y + i, v);
  }
};

template <class T>
struct GeluBackward {
  static constexpr int kMost = 16 / sizeof(T);
  const T* u;
  T* dx;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N], g[N];
    load(u + i, v);
    load(dx + i, g);
#pragma unroll
    for (int k = 0; k < N; ++k) g[k] *= gelu_of(v[k]).y;
    store(dx + i, g);
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

void gelu(cudaStream_t stream, View u, View y) {
  with_type(u.dtype, [&]<class T>() {
    over("gelu", stream, static_cast<Int>(u.count), aligned({u, y}), Gelu<T>{u.as<T>(), y.as<T>()});
  });
}

void gelu_backward(cudaStream_t stream, View u, View dx) {
  with_type(u.dtype, [&]<class T>() {
    over("gelu backward", stream, static_cast<Int>(u.count), aligned({u, dx}),
         GeluBackward<T>{u.as<T>(), dx.as<T>()});
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
