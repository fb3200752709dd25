// Kernels on rows of tokens: image patches and the class token before them, and the rows of a
// sample that are read.
//
// Dimensions: S samples, N patches of P x P pixels, C width. Templates: N elements per access.
#include <numeric>

#include "core/cuda/kernels/column_sums.cuh"
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"
#include "core/model/batch.h"

namespace concertina::cuda {
namespace {

struct PatchShape {
  Int channels, height, width, patch;
};

template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    cut_patches(const float* image, PatchShape s, T* patches, Int count) {
  const Int at = first_element<N>();
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
__global__ void __launch_bounds__(kElementThreads)
    join_class(const T* x, const float* cls, const float* wpe, T* y, Int count, Int all, Int c) {
  const Int at = first_element<N>();
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

/// Copies `width` elements of each sample; consecutive samples are a stride apart.
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    copy_parts(const T* from, Int from_stride, T* to, Int to_stride, Int count, Int width) {
  const Int at = first_element<N>();
  if (at >= count) return;
  float v[N];
  load(from + at / width * from_stride + at % width, v);
  store(to + at / width * to_stride + at % width, v);
}

__global__ void __launch_bounds__(kElementThreads)
    find_last_rows(const int* lengths, int* places, Int count, Int t) {
  const Int s = first_element<1>();
  if (s < count)
    places[s] = static_cast<int>(max(Int{1}, min(static_cast<Int>(lengths[s]), t)) - 1);
}

/// Each thread handles one row of targets[S,T], and counts the earlier rows with a target: T loads,
/// which a sample's threads share, instead of a scan. places[S,M], taken[S,M]; `count` is S T.
__global__ void __launch_bounds__(kElementThreads)
    find_targets(const int* targets, int* places, int* taken, Int count, Int t, Int most) {
  const Int at = first_element<1>();
  if (at >= count) return;
  const Int row = at % t, sample = at / t;
  Int before = 0, all = 0;
  for (Int i = 0; i < t; ++i) {
    const bool valid = targets[sample * t + i] >= 0;
    before += valid && i < row ? 1 : 0;
    all += valid ? 1 : 0;
  }
  if (targets[at] >= 0 && before < most) {
    places[sample * most + before] = static_cast<int>(row);
    taken[sample * most + before] = targets[at];
  }
  if (row >= all && row < most) places[sample * most + row] = taken[sample * most + row] = kIgnored;
}

/// The rows that are read: `each` rows of every sample's t rows, with width C.
struct RowPlaces {
  const int* places;  // null: the first row of each sample
  Int each, t, c;

  /// Returns the element of [S T,C] for element `at` of [S each,C]; negative if there is none.
  __device__ Int element(Int at) const {
    const Int row = at / c, place = places == nullptr ? 0 : places[row];
    return place < 0 ? -1 : (row / each * t + place) * c + at % c;
  }
};

/// y[S each,C] has `count` elements; x is [S T,C].
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    take_rows(const T* x, RowPlaces rows, T* y, Int count) {
  const Int at = first_element<N>();
  if (at >= count) return;
  const Int from = rows.element(at);
  float v[N] = {};
  if (from >= 0) load(x + from, v);
  store(y + at, v);
}

/// dx[S T,C] must be 0; dy[S each,C] has `count` elements.
template <class T, int N>
__global__ void __launch_bounds__(kElementThreads)
    spread_rows(const T* dy, RowPlaces rows, T* dx, Int count) {
  const Int at = first_element<N>();
  if (at >= count) return;
  const Int to = rows.element(at);
  if (to < 0) return;
  float v[N];
  load(dy + at, v);
  store(dx + to, v);
}

/// `read` is [S each,C]; `all` is [S T,C].
RowPlaces row_places(View places, Int samples, View read, View all) {
  const Int each = places.empty() ? 1 : static_cast<Int>(places.count) / samples;
  const Int c = static_cast<Int>(read.count) / (samples * each);
  return {places.empty() ? nullptr : places.i32(), each,
          static_cast<Int>(all.count) / (samples * c), c};
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

void run(cudaStream_t stream, const FindLastRows& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.places.count);
  launch("last rows found", elements_grid(count, 1), stream, find_last_rows, op.lengths.i32(),
         op.places.i32(), count, op.t);
}

void run(cudaStream_t stream, const FindTargets& op, void* /*scratch*/) {
  const auto count = static_cast<Int>(op.targets.count);
  launch("targets found", elements_grid(count, 1), stream, find_targets, op.targets.i32(),
         op.places.i32(), op.taken.i32(), count, count / op.samples,
         static_cast<Int>(op.places.count) / op.samples);
}

void run(cudaStream_t stream, const TakeRows& op, void* /*scratch*/) {
  const RowPlaces rows = row_places(op.places, op.samples, op.y, op.x);
  const auto count = static_cast<Int>(op.y.count);
  with_access(op.y.dtype, rows.c, {op.x, op.y}, [&]<class T, int N>() {
    launch("rows taken", elements_grid(count, N), stream, take_rows<T, N>, op.x.as<T>(), rows,
           op.y.as<T>(), count);
  });
}

void run(cudaStream_t stream, const ScatterRows& op, void* /*scratch*/) {
  const RowPlaces rows = row_places(op.places, op.samples, op.dy, op.dx);
  const auto count = static_cast<Int>(op.dy.count);
  check(cudaMemsetAsync(op.dx.data, 0, op.dx.bytes(), stream), "cudaMemsetAsync");
  with_access(op.dx.dtype, rows.c, {op.dy, op.dx}, [&]<class T, int N>() {
    launch("rows spread", elements_grid(count, N), stream, spread_rows<T, N>, op.dy.as<T>(), rows,
           op.dx.as<T>(), count);
  });
}

}  // namespace concertina::cuda
