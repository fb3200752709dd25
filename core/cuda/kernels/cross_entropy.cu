// RowSoftmax cross-entropy in place: one block a row, one pass that keeps the running maximum and
// the sum of e^(x - maximum) (Milakov & Gimelshein 2018), and one that writes the gradient. A row
// of an odd vocabulary starts anywhere: its ends are done one element at a time.
//
// Legend: R rows, V vocabulary; N elements an access.
#include <cfloat>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kLossThreads = 512, kSpanThreads = 128;

/// The sum of e^(x - top) over some x, top the largest of them.
struct RowSoftmax {
  float top = -FLT_MAX, sum = 0;

  __device__ void add(const RowSoftmax& other) {
    const float largest = fmaxf(top, other.top);
    sum = sum * expf(top - largest) + other.sum * expf(other.top - largest);
    top = largest;
  }
};

__device__ RowSoftmax block_softmax(RowSoftmax mine) {
  __shared__ float top[kWarp], sum[kWarp];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, mine.top, distance);
    mine.add({other, __shfl_xor_sync(kAllLanes, mine.sum, distance)});
  }
  const unsigned warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == 0) top[warp] = mine.top, sum[warp] = mine.sum;
  __syncthreads();
  RowSoftmax all{top[0], sum[0]};
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) all.add({top[w], sum[w]});
  return all;
}

/// f.template operator()<N>(i): once for each element of a row, those of one access together. Which
/// thread has which element depends on the row's address modulo 16 alone.
template <class T, class F>
__device__ void each_access(const T* row, Int v, F&& f) {
  constexpr int kVector = 16 / sizeof(T);
  const auto misaligned = static_cast<Int>(reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T));
  const Int head = min(v, misaligned == 0 ? Int{0} : kVector - misaligned);
  const Int vectors = (v - head) / kVector, tail = head + vectors * kVector;
  const Int thread = threadIdx.x;
  if (thread < head) f.template operator()<1>(thread);
  for (Int i = thread; i < vectors; i += blockDim.x)
    f.template operator()<kVector>(head + i * kVector);
  if (tail + thread < v) f.template operator()<1>(tail + thread);
}

template <class T>
__global__ void __launch_bounds__(kLossThreads)
    row_cross_entropy(T* logits, const int* targets, float scale, bool training, float* row_loss,
                      Int v) {
  T* row = logits + static_cast<Int>(blockIdx.x) * v;
  const int target = targets[blockIdx.x];
  if (target < 0) {  // the whole block
    if (training) each_access(row, v, [&]<int N>(Int i) { store<N>(row + i, {}); });
    if (threadIdx.x == 0) row_loss[blockIdx.x] = 0;
    return;
  }
  float right[1];
  load(row + target, right);
  RowSoftmax softmax;
  each_access(row, v, [&]<int N>(Int i) {
    float x[N];
    load(row + i, x);
    float top = softmax.top;
#pragma unroll
    for (int k = 0; k < N; ++k) top = fmaxf(top, x[k]);
    float sum = softmax.sum * expf(softmax.top - top);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += expf(x[k] - top);
    softmax = {top, sum};
  });
  softmax = block_softmax(softmax);  // all have read `right` after its barrier
  const float top = softmax.top;
  if (threadIdx.x == 0) row_loss[blockIdx.x] = top + logf(softmax.sum) - right[0];
  if (!training) return;
  const float factor = scale / softmax.sum;
  each_access(row, v, [&]<int N>(Int i) {
    float x[N];
    load(row + i, x);
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = factor * expf(x[k] - top) - (i + k == target ? scale : 0.0F);
    store(row + i, x);
  });
}

/// One block a sample: the starts, then the ends.
template <class T>
__global__ void __launch_bounds__(kSpanThreads)
    span_cross_entropy(T* logits, const int* starts, const int* ends, float scale, bool training,
                       float* row_loss, Int t) {
  float loss = 0;
  for (int side = 0; side < 2; ++side) {
    T* x = logits + static_cast<Int>(blockIdx.x) * 2 * t + side;
    const Int target = (side == 0 ? starts : ends)[blockIdx.x];
    if (target < 0 || target >= t) {  // the whole block
      for (Int i = threadIdx.x; training && i < t; i += kSpanThreads) store<1>(x + 2 * i, {});
      continue;
    }
    float right[1], v[1];
    load(x + 2 * target, right);
    RowSoftmax softmax;
    for (Int i = threadIdx.x; i < t; i += kSpanThreads) {
      load(x + 2 * i, v);
      softmax.add({v[0], 1});
    }
    softmax = block_softmax(softmax);  // all have read `right` after its barrier
    loss += softmax.top + logf(softmax.sum) - right[0];
    const float factor = scale / softmax.sum;
    for (Int i = threadIdx.x; training && i < t; i += kSpanThreads) {
      load(x + 2 * i, v);
      v[0] = factor * expf(v[0] - softmax.top) - (i == target ? scale : 0.0F);
      store(x + 2 * i, v);
    }
    __syncthreads();  // block_softmax may be called again
  }
  if (threadIdx.x == 0) row_loss[blockIdx.x] = 0.5F * loss;
}

}  // namespace

void run(cudaStream_t stream, const SpanCrossEntropy& op, void* /*scratch*/) {
  with_type(op.logits.dtype, [&]<class T>() {
    launch("span cross entropy", {dim3(static_cast<unsigned>(op.starts.count)), kSpanThreads},
           stream, span_cross_entropy<T>, op.logits.as<T>(), op.starts.i32(), op.ends.i32(),
           0.5F * op.loss_scale, op.training, op.row_loss.f32(), op.t);
  });
}

void run(cudaStream_t stream, const CrossEntropy& op, void* /*scratch*/) {
  const Int v = static_cast<Int>(op.logits.count / op.targets.count);
  with_type(op.logits.dtype, [&]<class T>() {
    launch("cross entropy", {dim3(static_cast<unsigned>(op.targets.count)), kLossThreads}, stream,
           row_cross_entropy<T>, op.logits.as<T>(), op.targets.i32(), op.loss_scale, op.training,
           op.row_loss.f32(), v);
  });
}

}  // namespace concertina::cuda
