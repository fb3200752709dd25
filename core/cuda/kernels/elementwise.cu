// Gradient sums, norms and dropout.
#include "core/cuda/kernels/dropout.cuh"
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

struct AxpbyElement {
  static constexpr int kRead = 2, kWritten = 1;
  float a, b;
  __device__ void operator()(float x, float& y) const { y = a * x + b * y; }
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
  by_element<float>("axpby", stream, AxpbyElement{op.a, op.b}, {op.x, op.y});
}

void run(cudaStream_t stream, const SumSquares& op, double* sums) {
  if (op.x.count == 0) return;
  const auto length = static_cast<Int>(op.block);
  launch("sum of squares",
         {dim3(blocks_for(static_cast<Int>(op.x.count), length)), kElementThreads}, stream,
         block_squares, op.x.f32(), static_cast<Int>(op.x.count), length,
         aligned({op.x}) && length % 4 == 0, sums);
}

// Dropout. A block processes a run of one sample's elements, each thread N of them (16 bytes if
// every sample is aligned to that), with one counter for every 4 elements.
namespace {

constexpr unsigned kDropThreads = 256;
constexpr Int kMostBlocks = 65535;  // in the second dimension of a grid

/// Generates the words for N elements of one sample, from element e (a multiple of N) on.
template <int N>
__device__ void random_words(const DropoutRule& rule, std::uint32_t sample, Int e,
                             std::uint32_t (&words)[N]) {
  const auto four = [&](Int counter) {
    return rule.words(sample, static_cast<std::uint32_t>(counter));
  };
  if constexpr (N == 1) {
    words[0] = four(e / 4)[e % 4];
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const auto next = four((e + i) / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k) words[i + k] = next[k];
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(kDropThreads)
    drop(DropoutRule rule, const MaskPlace* place, const T* u, const T* residual, T* y, Int samples,
         Int sample_elements) {
  const Int e = (static_cast<Int>(blockIdx.x) * kDropThreads + threadIdx.x) * N;
  if (e >= sample_elements) return;
  rule.move_to(place);
  for (Int s = blockIdx.y; s < samples; s += gridDim.y) {
    const Int i = s * sample_elements + e;
    std::uint32_t words[N];
    float v[N], skip[N] = {};
    random_words(rule, static_cast<std::uint32_t>(s), e, words);
    load(u + i, v);
    if (residual != nullptr) load(residual + i, skip);
#pragma unroll
    for (int k = 0; k < N; ++k)
      v[k] = skip[k] + (words[k] < rule.threshold ? 0 : v[k] * rule.scale);
    store(y + i, v);
  }
}

__global__ void write_place(MaskPlace place, MaskPlace* to) {
  if (threadIdx.x == 0) *to = place;
}

}  // namespace

void place_masks(cudaStream_t stream, MaskPlace place, MaskPlace* to) {
  launch("place of masks", {dim3(1), 32}, stream, write_place, place, to);
}

void run(cudaStream_t stream, const ApplyDropout& op, const MaskPlace* place) {
  const DropoutRule rule = rule_of(op.mask, Purpose::dropout);
  const Int elements = op.mask.sample_elements, samples = static_cast<Int>(op.u.count) / elements;
  with_access(op.u.dtype, elements, {op.u, op.residual, op.y}, [&]<class T, int N>() {
    const dim3 blocks(blocks_for(elements, Int{kDropThreads} * N),
                      static_cast<unsigned>(std::min(samples, kMostBlocks)));
    launch("dropout", {blocks, kDropThreads}, stream, drop<T, N>, rule, place, op.u.as<T>(),
           op.residual.as<T>(), op.y.as<T>(), samples, elements);
  });
}

}  // namespace concertina::cuda
