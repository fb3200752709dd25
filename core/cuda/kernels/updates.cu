// Kernels of optimizers.
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

/// Updates the moments, and returns Adam's direction.
__device__ inline float adam_direction(const AdamWConstants& k, float gradient, float& m,
                                       float& v) {
  const float scaled = gradient * k.grad_scale;
  m = k.beta1 * m + (1 - k.beta1) * scaled;
  v = k.beta2 * v + (1 - k.beta2) * scaled * scaled;
  return m * k.correction1 / (sqrtf(v) * k.correction2 + k.eps);
}

// Elementwise rules for gradient, weight and moments.
struct AdamWElement {
  static constexpr int kRead = 4, kWritten = 3;
  AdamWConstants k;
  __device__ void operator()(float g, float& w, float& m, float& v) const {
    const float update = adam_direction(k, g, m, v);
    w = w - k.decay * w - k.lr * update;
  }
};

struct SgdElement {
  static constexpr int kRead = 3, kWritten = 2;
  SgdRule k;
  __device__ void operator()(float g, float& w, float& m) const {
    const float d = k.grad_scale * g + k.decay * w;
    m = k.momentum * m + k.fresh * d;
    w = w - k.lr * (k.nesterov ? d + k.momentum * m : m);
  }
};

struct LionElement {
  static constexpr int kRead = 3, kWritten = 2;
  LionRule k;
  __device__ void operator()(float g, float& w, float& m) const {
    const float scaled = k.grad_scale * g;
    const float c = k.beta1 * m + (1 - k.beta1) * scaled;
    const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : 0.0F;
    m = k.beta2 * m + (1 - k.beta2) * scaled;
    w = w - k.lr * (sign + k.decay * w);
  }
};

struct ShrinkElement {
  static constexpr int kRead = 1, kWritten = 1;
  float by;
  __device__ void operator()(float& x) const {
    x = fabsf(x) <= by ? 0 : x - copysignf(by, x);  // keeps NaN
  }
};

struct KeepZerosElement {
  static constexpr int kRead = 2, kWritten = 1;
  __device__ void operator()(float w, float& x) const { x = w == 0 ? 0 : x; }
};

/// Replaces the gradient with the direction u of LAMB.
struct LambElement {
  static constexpr int kRead = 4, kWritten = 3;
  AdamWConstants k;
  __device__ void operator()(float w, float& g, float& m, float& v) const {
    g = adam_direction(k, g, m, v) + k.decay * w;
  }
};

/// Maximum number of pieces of a sum over a whole tensor.
constexpr Int kMostSums = 1024;

/// Returns the number of elements per piece, which depends only on the size of the tensor.
Int sum_run(Int count) {
  const Int share = (count + kMostSums - 1) / kMostSums;
  return std::max<Int>(4096, (share + 3) / 4 * 4);
}

/// Adds up the pieces. Every block of a kernel does this separately, in the same order.
__device__ inline double total_of(const double* sums, Int pieces) {
  double total[1] = {};
  for (Int i = threadIdx.x; i < pieces; i += kElementThreads) total[0] += sums[i];
  block_sum(total);
  return total[0];
}

__global__ void __launch_bounds__(kElementThreads)
    lamb_step(float* w, const float* u, Int count, float lr, bool adapt, const double* sums,
              Int pieces) {
  const double weights = total_of(sums, pieces), steps = total_of(sums + pieces, pieces);
  const double ratio = adapt && weights > 0 && steps > 0 ? sqrt(weights) / sqrt(steps) : 1;
  const auto rate = static_cast<float>(ratio * static_cast<double>(lr));
  for (Int i = static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x; i < count;
       i += static_cast<Int>(gridDim.x) * kElementThreads)
    w[i] = w[i] - rate * u[i];
}

__global__ void __launch_bounds__(kElementThreads)
    scale_to_unit(float* x, Int count, float least, const double* sums, Int pieces) {
  const double norm = sqrt(total_of(sums, pieces));
  const auto scale = static_cast<float>(1 / max(norm, static_cast<double>(least)));
  for (Int i = static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x; i < count;
       i += static_cast<Int>(gridDim.x) * kElementThreads)
    x[i] *= scale;
}

template <class T>
struct CopyColumnsElement {
  static constexpr int kMost = 1;
  const T* x;
  T* y;
  Int x_columns, y_columns, columns;
  template <int N>
  __device__ void operator()(Int i) const {
    y[i / columns * y_columns + i % columns] = x[i / columns * x_columns + i % columns];
  }
};

/// Returns the number of blocks for a grid-stride kernel, limited: each block adds up all pieces.
unsigned striding_blocks(Int count) {
  return static_cast<unsigned>(
      std::min<Int>((count + kElementThreads - 1) / kElementThreads, 1024));
}

/// Writes the sums of squares of x, by piece, to `sums`, and returns the number of pieces.
Int sum_pieces(cudaStream_t stream, View x, double* sums) {
  const Int length = sum_run(static_cast<Int>(x.count));
  run(stream, SumSquares{x, static_cast<std::size_t>(length), {}}, sums);
  return blocks_for(static_cast<Int>(x.count), length);
}

}  // namespace

void run(cudaStream_t stream, const AdamWUpdate& op, void* /*scratch*/) {
  by_element<float>("adamw", stream, AdamWElement{constants_of(op.rule)}, {op.g, op.w, op.m, op.v});
}

void run(cudaStream_t stream, const SgdUpdate& op, void* /*scratch*/) {
  by_element<float>("sgd", stream, SgdElement{op.rule}, {op.g, op.w, op.m});
}

void run(cudaStream_t stream, const LionUpdate& op, void* /*scratch*/) {
  by_element<float>("lion", stream, LionElement{op.rule}, {op.g, op.w, op.m});
}

void run(cudaStream_t stream, const LambUpdate& op, void* scratch) {
  if (op.w.count == 0) return;
  const Int count = static_cast<Int>(op.w.count);
  by_element<float>("lamb", stream, LambElement{op.rule.constants()}, {op.w, op.g, op.m, op.v});
  auto* const sums = static_cast<double*>(scratch);
  const Int pieces = sum_pieces(stream, op.w, sums);
  sum_pieces(stream, op.g, sums + pieces);
  launch("lamb step", {dim3(striding_blocks(count)), kElementThreads}, stream, lamb_step,
         op.w.f32(), op.g.f32(), count, op.rule.moments.lr, op.rule.adapt,
         static_cast<const double*>(sums), pieces);
}

void run(cudaStream_t stream, const ScaleToUnit& op, void* scratch) {
  if (op.x.count == 0) return;
  const Int count = static_cast<Int>(op.x.count);
  auto* const sums = static_cast<double*>(scratch);
  const Int pieces = sum_pieces(stream, op.x, sums);
  launch("scale to unit", {dim3(striding_blocks(count)), kElementThreads}, stream, scale_to_unit,
         op.x.f32(), count, op.least, static_cast<const double*>(sums), pieces);
}

void run(cudaStream_t stream, const Shrink& op, void* /*scratch*/) {
  by_element<float>("shrink", stream, ShrinkElement{op.by}, {op.x});
}

void run(cudaStream_t stream, const KeepZeros& op, void* /*scratch*/) {
  by_element<float>("keep zeros", stream, KeepZerosElement{}, {op.w, op.x});
}

void run(cudaStream_t stream, const CopyColumns& op, void* /*scratch*/) {
  const Int rows = static_cast<Int>(op.x.count) / op.x_columns;
  with_type(op.x.dtype, [&]<class T>() {
    over("copy columns", stream, rows * op.columns, false,
         CopyColumnsElement<T>{op.x.as<T>() + op.first_x, op.y.as<T>() + op.first_y, op.x_columns,
                               op.y_columns, op.columns});
  });
}

}  // namespace concertina::cuda
