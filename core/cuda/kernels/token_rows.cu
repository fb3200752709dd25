// Rows that are tokens: those of an image's patches, a class token before them, and one row of each
// sample.
//
// Legend: S samples, N patches of P x P pixels, C width. Templates: N elements an access.
#include <numeric>

#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kTokenThreads = 256;

Grid elements_grid(Int count, int n) {
  return {dim3(blocks_for(count, Int{kTokenThreads} * n)), kTokenThreads};
}

struct PatchShape {
  Int channels, height, width, patch;
};

template <class T, int N>
__global__ void __launch_bounds__(kTokenThreads)
    cut_patches(const float* image, PatchShape s, T* patches, Int count) {
  const Int at = (static_cast<Int>(blockIdx.x) * kTokenThreads + threadIdx.x) * N;
  if (at >= count) return;
  const Int p = s.patch, across = s.width / p, down = s.height / p;
  const Int x = at % p, y = at / p % p, channel = at / (p * p) % s.channels;
  const Int patch = at / (p * p * s.channels), column = patch % across, row = patch / across % down,
            sample = patch / (across * down);
  float v[N];
  load(
      image + ((sample * s.channels + channel) * s.height + row * p + y) * s.width + column * p + x,
      v);
  store(patches + at, v);
}

template <class T, int N>
__global__ void __launch_bounds__(kTokenThreads)
    join_class(const T* x, const float* cls, const float* wpe, T* y, Int count, Int all, Int c) {
  const Int at = (static_cast<Int>(blockIdx.x) * kTokenThreads + threadIdx.x) * N;
  if (at >= count) return;
  const Int place = at % all, sample = at / all;
  float v[N], position[N];
  load(wpe + place, position);
  if (place < c)
    load(cls + place, v);
  else
    load(x + sample * (all - c) + place - c, v);
#pragma unroll
  for (int k = 0; k < N; ++k) v[k] += position[k];
  store(y + at, v);
}

/// `width` elements of each sample, whose samples start each stride.
template <class T, int N>
__global__ void __launch_bounds__(kTokenThreads)
    copy_parts(const T* from, Int from_stride, T* to, Int to_stride, Int count, Int width) {
  const Int at = (static_cast<Int>(blockIdx.x) * kTokenThreads + threadIdx.x) * N;
  if (at >= count) return;
  float v[N];
  load(from + at / width * from_stride + at % width, v);
  store(to + at / width * to_stride + at % width, v);
}

/// The row that TakeRows takes of a sample, which has t.
__device__ Int row_taken(const int* lengths, Int sample, Int t) {
  return lengths == nullptr ? 0 : max(Int{1}, min(static_cast<Int>(lengths[sample]), t)) - 1;
}

/// y[S,C], of which `count` elements; x[S T,C]. lengths[S] may be null.
template <class T, int N>
__global__ void __launch_bounds__(kTokenThreads)
    take_rows(const T* x, const int* lengths, T* y, Int count, Int t, Int c) {
  const Int at = (static_cast<Int>(blockIdx.x) * kTokenThreads + threadIdx.x) * N;
  if (at >= count) return;
  const Int sample = at / c;
  float v[N];
  load(x + (sample * t + row_taken(lengths, sample, t)) * c + at % c, v);
  store(y + at, v);
}

/// dx[S T,C], of which `count` elements; dy[S,C].
template <class T, int N>
__global__ void __launch_bounds__(kTokenThreads)
    spread_rows(const T* dy, const int* lengths, T* dx, Int count, Int t, Int c) {
  const Int at = (static_cast<Int>(blockIdx.x) * kTokenThreads + threadIdx.x) * N;
  if (at >= count) return;
  const Int row = at / c, sample = row / t;
  float v[N] = {};
  if (row % t == row_taken(lengths, sample, t)) load(dy + sample * c + at % c, v);
  store(dx + at, v);
}

const int* lengths_or_null(View lengths) {
  return lengths.empty() ? nullptr : lengths.i32();
}

}  // namespace

void run(cudaStream_t stream, const ImagePatches& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.patches.count);
  with_access(op.patches.dtype, op.patch, {op.image, op.patches}, [&]<class T, int N>() {
    launch("image patches", elements_grid(count, N), stream, cut_patches<T, N>, op.image.f32(),
           PatchShape{op.channels, op.height, op.width, op.patch}, op.patches.as<T>(), count);
  });
}

void run(cudaStream_t stream, const JoinClass& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.y.count), c = static_cast<Int>(op.cls.count);
  with_access(op.y.dtype, c, {op.x, op.cls, op.wpe, op.y}, [&]<class T, int N>() {
    launch("class token", elements_grid(count, N), stream, join_class<T, N>, op.x.as<T>(),
           op.cls.f32(), op.wpe.f32(), op.y.as<T>(), count, static_cast<Int>(op.wpe.count), c);
  });
}

void run(cudaStream_t stream, const JoinClassWeight& op, void* /*scratch*/) {
  const auto all = static_cast<Int>(op.dwpe.count), c = static_cast<Int>(op.dcls.count);
  with_access(op.dy.dtype, c, {op.dy, op.dcls, op.dwpe}, [&]<class T, int N>() {
    for (const View& to : {op.dwpe, op.dcls})
      launch("class token backward",
             {dim3(blocks_for(static_cast<Int>(to.count), kSampleThreads * N)), kSampleThreads},
             stream, sum_samples<T, N>, op.dy.as<T>(), to.f32(), static_cast<Int>(to.count), all,
             static_cast<Int>(op.dy.count), op.accumulate);
  });
}

void run(cudaStream_t stream, const SplitClass& op, void* /*scratch*/) {
  const Int all = static_cast<Int>(op.dy.count) / op.samples,
            rest = static_cast<Int>(op.dx.count) / op.samples, c = all - rest;
  with_access(op.dy.dtype, std::gcd(rest, c), {op.dy, op.dx}, [&]<class T, int N>() {
    const auto count = static_cast<Int>(op.dx.count);
    launch("class token input", elements_grid(count, N), stream, copy_parts<T, N>,
           op.dy.as<T>() + c, all, op.dx.as<T>(), rest, count, rest);
  });
}

void run(cudaStream_t stream, const TakeRows& op, void* /*scratch*/) {
  const Int c = static_cast<Int>(op.y.count) / op.samples;
  const auto count = static_cast<Int>(op.y.count), t = static_cast<Int>(op.x.count) / count;
  with_access(op.y.dtype, c, {op.x, op.y}, [&]<class T, int N>() {
    launch("rows taken", elements_grid(count, N), stream, take_rows<T, N>, op.x.as<T>(),
           lengths_or_null(op.lengths), op.y.as<T>(), count, t, c);
  });
}

void run(cudaStream_t stream, const SpreadRows& op, void* /*scratch*/) {
  const Int c = static_cast<Int>(op.dy.count) / op.samples;
  const auto count = static_cast<Int>(op.dx.count), t = count / static_cast<Int>(op.dy.count);
  with_access(op.dx.dtype, c, {op.dy, op.dx}, [&]<class T, int N>() {
    launch("rows spread", elements_grid(count, N), stream, spread_rows<T, N>, op.dy.as<T>(),
           lengths_or_null(op.lengths), op.dx.as<T>(), count, t, c);
  });
}

}  // namespace concertina::cuda
