// Activation functions and their derivatives: GELU in both forms, gated SiLU, tanh.
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"

namespace concertina::cuda {
namespace {

/// 1 / (1 + e^-x); it keeps its relative accuracy where it is near 0.
__device__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0F) / (1.0F + e);
}

/// GELU, tanh form (Hendrycks & Gimpel 2016), as u sigmoid(2 z): value and derivative.
struct TanhForm {
  static __device__ float2 of(float u) {
    const float k2 = 2 * 0.797884560802865356F, cubic = 0.044715F;
    const float square = u * u, s = sigmoid(k2 * u * (1.0F + cubic * square));
    return make_float2(u * s, s + u * s * (1.0F - s) * k2 * (1.0F + 3.0F * cubic * square));
  }
};
/// GELU, u Phi(u).
struct ErfForm {
  static __device__ float2 of(float u) {
    const float phi = 0.5F * erfcf(-0.70710678118654752F * u);
    return make_float2(u * phi, phi + u * 0.39894228040143268F * expf(-0.5F * u * u));
  }
};

template <class T, class Form>
struct Gelu {
  static constexpr int kMost = 16 / sizeof(T);
  const T* u;
  T* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N];
    load(u + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = Form::of(v[k]).x;
    store(y + i, v);
  }
};

template <class T, class Form>
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
    for (int k = 0; k < N; ++k) g[k] *= Form::of(v[k]).y;
    store(dx + i, g);
  }
};

/// f.template operator()<T, Form>()
template <class F>
void with_form(DType type, Epilogue::Kind kind, F&& f) {
  with_type(type, [&]<class T>() {
    if (kind == Epilogue::Kind::gelu_erf)
      f.template operator()<T, ErfForm>();
    else
      f.template operator()<T, TanhForm>();
  });
}

template <class T>
struct TanhElement {
  static constexpr int kMost = 16 / sizeof(T);
  const T* x;
  T* y;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N];
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = tanhf(v[k]);
    store(y + i, v);
  }
};

template <class T>
struct TanhBackward {
  static constexpr int kMost = 16 / sizeof(T);
  const T *dy, *y;
  T* dx;
  template <int N>
  __device__ void operator()(Int i) const {
    float v[N], g[N];
    load(y + i, v);
    load(dy + i, g);
#pragma unroll
    for (int k = 0; k < N; ++k) g[k] *= 1.0F - v[k] * v[k];
    store(dx + i, g);
  }
};

/// A thread has N elements of y[R,F] or dy[R,F], and the two parts of u[R,2F] that are theirs.
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads) gate(const T* u, T* y, Int count, Int f) {
  const Int at = (static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x) * N;
  if (at >= count) return;
  const T* from = u + at / f * 2 * f + at % f;
  float x[N], v[N];
  load(from, x);
  load(from + f, v);
#pragma unroll
  for (int k = 0; k < N; ++k) v[k] *= x[k] * sigmoid(x[k]);
  store(y + at, v);
}

template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    gate_backward(const T* dy, const T* u, T* du, Int count, Int f) {
  const Int at = (static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x) * N;
  if (at >= count) return;
  const Int of_gate = at / f * 2 * f + at % f;
  float x[N], v[N], d[N];
  load(u + of_gate, x);
  load(u + of_gate + f, v);
  load(dy + at, d);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float s = sigmoid(x[k]), to_gate = d[k] * v[k] * (s + x[k] * s * (1.0F - s));
    v[k] = d[k] * (x[k] * s);
    x[k] = to_gate;
  }
  store(du + of_gate, x);
  store(du + of_gate + f, v);
}

}  // namespace

void gelu(cudaStream_t stream, Epilogue::Kind kind, View u, View y) {
  with_form(u.dtype, kind, [&]<class T, class Form>() {
    over("gelu", stream, static_cast<Int>(u.count), aligned({u, y}),
         Gelu<T, Form>{u.as<T>(), y.as<T>()});
  });
}

void gelu_backward(cudaStream_t stream, Epilogue::Kind kind, View u, View dx) {
  with_form(u.dtype, kind, [&]<class T, class Form>() {
    over("gelu backward", stream, static_cast<Int>(u.count), aligned({u, dx}),
         GeluBackward<T, Form>{u.as<T>(), dx.as<T>()});
  });
}

void run(cudaStream_t stream, const GatedSilu& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.y.count);
  with_access(op.u.dtype, op.width, {op.u, op.y}, [&]<class T, int N>() {
    launch("gated silu", {dim3(blocks_for(count, Int{kElementThreads} * N)), kElementThreads},
           stream, gate<T, N>, op.u.as<T>(), op.y.as<T>(), count, op.width);
  });
}

void run(cudaStream_t stream, const GatedSiluInput& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.dy.count);
  with_access(op.u.dtype, op.width, {op.dy, op.u, op.du}, [&]<class T, int N>() {
    launch("gated silu backward",
           {dim3(blocks_for(count, Int{kElementThreads} * N)), kElementThreads}, stream,
           gate_backward<T, N>, op.dy.as<T>(), op.u.as<T>(), op.du.as<T>(), count, op.width);
  });
}

void run(cudaStream_t stream, const Tanh& op, void* /*scratch*/) {
  with_type(op.x.dtype, [&]<class T>() {
    over("tanh", stream, static_cast<Int>(op.y.count), aligned({op.x, op.y}),
         TanhElement<T>{op.x.as<T>(), op.y.as<T>()});
  });
}

void run(cudaStream_t stream, const TanhInput& op, void* /*scratch*/) {
  with_type(op.y.dtype, [&]<class T>() {
    over("tanh backward", stream, static_cast<Int>(op.dx.count), aligned({op.dy, op.y, op.dx}),
         TanhBackward<T>{op.dy.as<T>(), op.y.as<T>(), op.dx.as<T>()});
  });
}

void run(cudaStream_t stream, const GeluInput& op, void* /*scratch*/) {
  gelu_backward(stream, op.kind, op.aux, op.dx);
}

}  // namespace concertina::cuda
