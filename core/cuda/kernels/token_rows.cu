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

/// Of each sample a part: `from` and `to` are its first, `offset` elements into one of the two.
void copy_parts_of(const char* name, cudaStream_t stream, View from, Int from_offset, View to,
                   Int to_offset, Int samples) {
  const Int from_stride = static_cast<Int>(from.count) / samples,
            to_stride = static_cast<Int>(to.count) / samples;
  const Int width = std::min(from_stride, to_stride), count = width * samples;
  with_access(from.dtype, std::gcd(std::gcd(from_stride, to_stride), from_offset + to_offset),
              {from, to}, [&]<class T, int N>() {
                launch(name, elements_grid(count, N), stream, copy_parts<T, N>,
                       from.as<T>() + from_offset, from_stride, to.as<T>() + to_offset, to_stride,
                       count, width);
              });
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
  const Int c = static_cast<Int>(op.dy.count - op.dx.count) / op.samples;
  copy_parts_of("class token input", stream, op.dy, c, op.dx, 0, op.samples);
}

void run(cudaStream_t stream, const TakeRows& op, void* /*scratch*/) {
  const Int c = static_cast<Int>(op.y.count) / op.samples;
  copy_parts_of("rows taken", stream, op.x, op.row * c, op.y, 0, op.samples);
}

void run(cudaStream_t stream, const SpreadRows& op, void* /*scratch*/) {
  const Int c = static_cast<Int>(op.dy.count) / op.samples;
  check(cudaMemsetAsync(op.dx.data, 0, op.dx.bytes(), stream), "cudaMemsetAsync");
  copy_parts_of("rows spread", stream, op.dy, 0, op.dx, op.row * c, op.samples);
}

}  // namespace concertina::cuda
