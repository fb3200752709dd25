// Activation functions and their derivatives (both forms of GELU, ReLU, SiLU and gated SiLU,
// tanh), and rotary position embedding.
#include <algorithm>
#include <numeric>

#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"
#include "core/rotary.h"

namespace concertina::cuda {
namespace {

/// 1 / (1 + e^-x). It keeps its relative accuracy near 0.
__device__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0F) / (1.0F + e);
}

/// The tanh form of GELU (Hendrycks & Gimpel 2016), as u sigmoid(2 z): value and derivative.
struct TanhForm {
  static __device__ float2 of(float u) {
    const float k2 = 2 * 0.797884560802865356F, cubic = 0.044715F;
    const float square = u * u, s = sigmoid(k2 * u * (1.0F + cubic * square));
    return make_float2(u * s, s + u * s * (1.0F - s) * k2 * (1.0F + 3.0F * cubic * square));
  }
};
struct ReluForm {
  static __device__ float2 of(float u) { return make_float2(fmaxf(u, 0.0F), u > 0 ? 1.0F : 0.0F); }
};
struct SiluForm {
  static __device__ float2 of(float u) {
    const float s = sigmoid(u);
    return make_float2(u * s, s + u * s * (1.0F - s));
  }
};
/// GELU, u Phi(u).
struct ErfForm {
  static __device__ float2 of(float u) {
    const float phi = 0.5F * erfcf(-0.70710678118654752F * u);
    return make_float2(u * phi, phi + u * 0.39894228040143268F * expf(-0.5F * u * u));
  }
};

template <class Form>
struct Activate {
  static constexpr int kRead = 1, kWritten = 1;
  __device__ void operator()(float u, float& y) const { y = Form::of(u).x; }
};

template <class Form>
struct ActivateBackward {
  static constexpr int kRead = 2, kWritten = 1;
  __device__ void operator()(float dy, float u, float& dx) const { dx = dy * Form::of(u).y; }
};

/// Calls f.template operator()<T, Form>().
template <class F>
void with_form(DType type, Epilogue::Kind kind, F&& f) {
  with_type(type, [&]<class T>() {
    switch (kind) {
      case Epilogue::Kind::gelu:
        return f.template operator()<T, TanhForm>();
      case Epilogue::Kind::gelu_erf:
        return f.template operator()<T, ErfForm>();
      case Epilogue::Kind::relu:
        return f.template operator()<T, ReluForm>();
      case Epilogue::Kind::silu:
        return f.template operator()<T, SiluForm>();
      case Epilogue::Kind::none:
      case Epilogue::Kind::residual:
        return;
    }
  });
}

struct TanhElement {
  static constexpr int kRead = 1, kWritten = 1;
  __device__ void operator()(float x, float& y) const { y = tanhf(x); }
};

struct TanhBackward {
  static constexpr int kRead = 2, kWritten = 1;
  __device__ void operator()(float dy, float y, float& dx) const { dx = dy * (1.0F - y * y); }
};

/// Each thread handles N elements of y[R,F] or dy[R,F] and the corresponding two parts of u[R,2F].
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads) gate(const T* u, T* y, Int count, Int f) {
  const Int at = first_element<N>();
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
  const Int at = first_element<N>();
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

void activate(cudaStream_t stream, Epilogue::Kind kind, View u, View y) {
  with_form(u.dtype, kind, [&]<class T, class Form>() {
    by_element<T>("activation", stream, Activate<Form>(), {u, y});
  });
}

void activate_backward(cudaStream_t stream, Epilogue::Kind kind, View dy, View u, View dx) {
  with_form(u.dtype, kind, [&]<class T, class Form>() {
    by_element<T>("activation backward", stream, ActivateBackward<Form>(), {dy, u, dx});
  });
}

void run(cudaStream_t stream, const GatedSilu& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.y.count);
  with_access(op.u.dtype, op.width, {op.u, op.y}, [&]<class T, int N>() {
    launch("gated silu", elements_grid(count, N), stream, gate<T, N>, op.u.as<T>(), op.y.as<T>(),
           count, op.width);
  });
}

void run(cudaStream_t stream, const GatedSiluInput& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.dy.count);
  with_access(op.u.dtype, op.width, {op.dy, op.u, op.du}, [&]<class T, int N>() {
    launch("gated silu backward", elements_grid(count, N), stream, gate_backward<T, N>,
           op.dy.as<T>(), op.u.as<T>(), op.du.as<T>(), count, op.width);
  });
}

void run(cudaStream_t stream, const Tanh& op, void* /*scratch*/) {
  with_type(op.x.dtype, [&]<class T>() {
    by_element<T>("tanh", stream, TanhElement(), {op.x, op.y});
  });
}

void run(cudaStream_t stream, const TanhInput& op, void* /*scratch*/) {
  with_type(op.y.dtype, [&]<class T>() {
    by_element<T>("tanh backward", stream, TanhBackward(), {op.dy, op.y, op.dx});
  });
}

void run(cudaStream_t stream, const ActivationInput& op, void* /*scratch*/) {
  activate_backward(stream, op.kind, op.dy, op.aux, op.dx);
}

// Rotary position embedding (Su et al. 2021) in place: a thread rotates N pairs of one row's head.
//
// Dimensions: R rows, T tokens per sample, H rotated heads of D columns; N elements per access.
namespace {

constexpr Int kMostPairs = 256;  // per launch

/// Computed on the host and rounded once, so that every backend has the same angles.
struct Frequencies {
  double of[kMostPairs];
};

/// Writes the sines and cosines of pairs [first, first + pairs).
__global__ void __launch_bounds__(kElementThreads)
    fill_rotary_table(Frequencies frequencies, float* table, Int tokens, Int half, Int first,
                      Int pairs, double magnitude) {
  const Int at = first_element<1>();
  if (at >= tokens * pairs) return;
  const Int t = at / pairs, i = at % pairs;
  const double angle = static_cast<double>(t) * frequencies.of[i];
  float* to = table + t * 2 * half + first + i;
  to[0] = static_cast<float>(magnitude * cos(angle));
  to[half] = static_cast<float>(magnitude * sin(angle));
}

template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    rotate_pairs(T* x, const float* table, const int* starts, Int rows, Int stride, Int heads,
                 Int head_dim, Int half, Int tokens, float sign) {
  const Int at = first_element<N>();
  if (at >= rows * heads * half) return;
  const Int i = at % half, head = at / half % heads, row = at / half / heads;
  T *low = x + row * stride + head * head_dim + i, *high = low + half;
  const Int position = row % tokens - (starts == nullptr ? 0 : starts[row]);
  const float* angles = table + position * 2 * half + i;
  float a[N], b[N], cosine[N], sine[N];
  load(low, a);
  load(high, b);
  load(angles, cosine);
  load(angles + half, sine);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float s = sign * sine[k], turned = a[k] * cosine[k] - b[k] * s;
    b[k] = b[k] * cosine[k] + a[k] * s;
    a[k] = turned;
  }
  store(low, a);
  store(high, b);
}

}  // namespace

void run(cudaStream_t stream, const RotaryTable& op, void* /*scratch*/) {
  const Int half = op.spec.columns / 2;
  for (Int first = 0; first < half; first += kMostPairs) {
    const Int pairs = std::min(kMostPairs, half - first);
    Frequencies frequencies{};
    for (Int i = 0; i < pairs; ++i) frequencies.of[i] = rotary_frequency(op.spec, first + i);
    launch("rotary table", elements_grid(op.tokens * pairs, 1), stream, fill_rotary_table,
           frequencies, op.table.f32(), op.tokens, half, first, pairs, op.spec.magnitude);
  }
}

void run(cudaStream_t stream, const Rotate& op, void* /*scratch*/) {
  const Int half = op.columns / 2, rows = static_cast<Int>(op.x.count) / op.stride;
  with_access(op.x.dtype, std::gcd(std::gcd(op.stride, op.head_dim), half), {op.x, op.table},
              [&]<class T, int N>() {
                launch("rotary embedding", elements_grid(rows * op.heads * half, N), stream,
                       rotate_pairs<T, N>, op.x.as<T>(), op.table.f32(), op.starts.i32(), rows,
                       op.stride, op.heads, op.head_dim, half, op.tokens,
                       op.inverse ? -1.0F : 1.0F);
              });
}

}  // namespace concertina::cuda
