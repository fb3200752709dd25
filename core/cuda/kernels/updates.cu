// Kernels of optimizers.
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

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

/// The direction u of LAMB takes the place of the gradient.
struct LambElement {
  static constexpr int kMost = 4;
  AdamWConstants k;
  const float* w;
  float *m, *v, *g;
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
      grad[j] = first[j] * k.correction1 / (sqrtf(second[j]) * k.correction2 + k.eps) +
                k.decay * weight[j];
    }
    store(m + i, first);
    store(v + i, second);
    store(g + i, grad);
  }
};

/// Sums over a whole tensor: of so many pieces at most.
constexpr Int kMostSums = 1024;

/// Elements of a piece, a function of the tensor alone.
Int sum_run(Int count) {
  const Int share = (count + kMostSums - 1) / kMostSums;
  return std::max<Int>(4096, (share + 3) / 4 * 4);
}

/// Sums of squares of a, and of b unless it is null, by piece: sums[2 pieces].
__global__ void __launch_bounds__(kElementThreads)
    piece_squares(const float* a, const float* b, Int count, Int length, double* sums) {
  const Int begin = static_cast<Int>(blockIdx.x) * length, end = min(begin + length, count);
  double sum[2] = {};
  for (Int i = begin + threadIdx.x; i < end; i += kElementThreads) {
    sum[0] += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    if (b != nullptr) sum[1] += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  block_sum(sum);
  if (threadIdx.x != 0) return;
  sums[2 * blockIdx.x] = sum[0];
  sums[2 * blockIdx.x + 1] = sum[1];
}

/// Adds the pieces up; every block of a kernel does it for itself, in one order.
__device__ inline void total_squares(const double* sums, Int pieces, double (&total)[2]) {
  total[0] = total[1] = 0;
  for (Int i = threadIdx.x; i < pieces; i += kElementThreads) {
    total[0] += sums[2 * i];
    total[1] += sums[2 * i + 1];
  }
  block_sum(total);
}

__global__ void __launch_bounds__(kElementThreads)
    lamb_step(float* w, const float* u, Int count, float lr, bool adapt, const double* sums,
              Int pieces) {
  double total[2];
  total_squares(sums, pieces, total);
  const double ratio = adapt && total[0] > 0 && total[1] > 0 ? sqrt(total[0]) / sqrt(total[1]) : 1;
  const auto rate = static_cast<float>(ratio * static_cast<double>(lr));
  for (Int i = static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x; i < count;
       i += static_cast<Int>(gridDim.x) * kElementThreads)
    w[i] = w[i] - rate * u[i];
}

__global__ void __launch_bounds__(kElementThreads)
    scale_to_unit(const float* x, float* y, Int count, float least, const double* sums,
                  Int pieces) {
  double total[2];
  total_squares(sums, pieces, total);
  const auto scale = static_cast<float>(1 / max(sqrt(total[0]), static_cast<double>(least)));
  for (Int i = static_cast<Int>(blockIdx.x) * kElementThreads + threadIdx.x; i < count;
       i += static_cast<Int>(gridDim.x) * kElementThreads)
    y[i] = scale * x[i];
}

struct CopyColumnsElement {
  static constexpr int kMost = 1;
  const float* x;
  float* y;
  Int x_columns, y_columns, columns;
  template <int N>
  __device__ void operator()(Int i) const {
    y[i / columns * y_columns + i % columns] = x[i / columns * x_columns + i % columns];
  }
};

/// Of kernels that stride: enough for a device, so that each block adds up the pieces seldom.
unsigned striding_blocks(Int count) {
  return static_cast<unsigned>(
      std::min<Int>((count + kElementThreads - 1) / kElementThreads, 1024));
}

/// The sums in `scratch`; how many pieces they are.
Int sum_pieces(cudaStream_t stream, View a, View b, void* scratch) {
  const Int count = static_cast<Int>(a.count), length = sum_run(count);
  const unsigned pieces = blocks_for(count, length);
  launch("sums of a tensor", {dim3(pieces), kElementThreads}, stream, piece_squares, a.f32(),
         b.empty() ? nullptr : b.f32(), count, length, static_cast<double*>(scratch));
  return pieces;
}

}  // namespace

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

void run(cudaStream_t stream, const LambUpdate& op, void* scratch) {
  if (op.w.count == 0) return;
  const Int count = static_cast<Int>(op.w.count);
  over("lamb", stream, count, aligned({op.w, op.m, op.v, op.g}),
       LambElement{op.rule.constants(), op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32()});
  const Int pieces = sum_pieces(stream, op.w, op.g, scratch);
  launch("lamb step", {dim3(striding_blocks(count)), kElementThreads}, stream, lamb_step,
         op.w.f32(), op.g.f32(), count, op.rule.moments.lr, op.rule.adapt,
         static_cast<const double*>(scratch), pieces);
}

void run(cudaStream_t stream, const ScaleToUnit& op, void* scratch) {
  if (op.x.count == 0) return;
  const Int count = static_cast<Int>(op.x.count);
  const Int pieces = sum_pieces(stream, op.x, {}, scratch);
  launch("scale to unit", {dim3(striding_blocks(count)), kElementThreads}, stream, scale_to_unit,
         op.x.f32(), op.y.f32(), count, op.least, static_cast<const double*>(scratch), pieces);
}

void run(cudaStream_t stream, const CopyColumns& op, void* /*scratch*/) {
  const Int rows = static_cast<Int>(op.x.count) / op.x_columns;
  over("copy columns", stream, rows * op.columns, false,
       CopyColumnsElement{op.x.f32() + op.first_x, op.y.f32() + op.first_y, op.x_columns,
                          op.y_columns, op.columns});
}

}  // namespace concertina::cuda
