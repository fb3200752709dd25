// Attention with a cache of keys and values (AttentionShape::capacity). A block computes one query
// of one head: its warps take the keys in turn, each with a running maximum and sum (Milakov &
// Gimelshein 2018), and the first warp adds their results.
#include "core/cuda/kernels/attention.cuh"
#include "core/cuda/kernels/elements.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr int kCacheWarps = 4, kCacheColumns = kMostHeadDim / 32;  // columns per lane
constexpr unsigned kCacheThreads = kCacheWarps * 32;

/// A row's sample, and its position there.
struct Place {
  int sample, at;
};
__device__ Place place_of(int row, const int* starts, int tokens) {
  return {row / tokens, row % tokens - starts[row]};
}

template <class T>
__global__ void __launch_bounds__(kElementThreads)
    store_in_cache(const T* qkv, const int* starts, T* cache, Heads heads, int capacity,
                   Int count) {
  const Int at = first_element<1>();
  if (at >= count) return;
  const Int column = at % heads.d, head = at / heads.d % (2 * heads.kv);
  const int row = static_cast<int>(at / heads.d / (2 * heads.kv));
  const Place place = place_of(row, starts, heads.tokens);
  cache[((place.sample * 2 * heads.kv + head) * capacity + place.at) * heads.d + column] =
      qkv[row * heads.stride() + (heads.heads + head) * heads.d + column];
}

/// The lane's columns of a row of D elements, and zeros after it.
template <class T>
__device__ void load_columns(const T* row, int d, float (&to)[kCacheColumns]) {
#pragma unroll
  for (int c = 0; c < kCacheColumns; ++c) {
    const int column = static_cast<int>(threadIdx.x % 32) + 32 * c;
    float x[1] = {};
    if (column < d) load(row + column, x);
    to[c] = x[0];
  }
}

template <class T>
__global__ void __launch_bounds__(kCacheThreads)
    attend(const T* qkv, const int* starts, const T* cache, T* y, Heads heads, int capacity) {
  __shared__ float tops[kCacheWarps], sums[kCacheWarps], outs[kCacheWarps][kMostHeadDim];
  const int row = static_cast<int>(blockIdx.x) / heads.heads,
            head = static_cast<int>(blockIdx.x) % heads.heads, d = heads.d;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const Place place = place_of(row, starts, heads.tokens);
  const T* keys = cache + (Int{place.sample} * 2 * heads.kv + head / heads.group()) * capacity * d;
  const T* values = keys + Int{heads.kv} * capacity * d;
  float q[kCacheColumns], x[kCacheColumns], out[kCacheColumns] = {}, top = -1e30F, sum = 0;
  load_columns(qkv + row * heads.stride() + head * d, d, q);
  for (int j = warp; j <= place.at; j += kCacheWarps) {
    load_columns(keys + Int{j} * d, d, x);
    float s = 0;
#pragma unroll
    for (int c = 0; c < kCacheColumns; ++c) s += q[c] * x[c];
    s = warp_sum(s) * heads.scale;
    const float largest = fmaxf(top, s), shrink = expf(top - largest), p = expf(s - largest);
    sum = sum * shrink + p;
    top = largest;
    load_columns(values + Int{j} * d, d, x);
#pragma unroll
    for (int c = 0; c < kCacheColumns; ++c) out[c] = out[c] * shrink + p * x[c];
  }
  if (lane == 0) tops[warp] = top, sums[warp] = sum;
#pragma unroll
  for (int c = 0; c < kCacheColumns; ++c) outs[warp][lane + 32 * c] = out[c];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= d) return;
  top = tops[0];
  for (int w = 1; w < kCacheWarps; ++w) top = fmaxf(top, tops[w]);
  float all = 0, sum_of_all = 0;
  for (int w = 0; w < kCacheWarps; ++w) {
    const float factor = expf(tops[w] - top);
    all += factor * outs[w][threadIdx.x];
    sum_of_all += factor * sums[w];
  }
  const float result[1] = {all / sum_of_all};
  store(y + row * heads.width() + head * d + threadIdx.x, result);
}
static_assert(kMostHeadDim <= kCacheThreads);

}  // namespace

void cached_attention(cudaStream_t stream, const AttentionShape& shape,
                      const AttentionForward& op) {
  const Heads heads = heads_of(shape, {}, {});
  const auto capacity = static_cast<int>(shape.capacity);
  const Int rows = shape.samples * shape.tokens, stored = rows * 2 * shape.kv_width();
  with_type(shape.compute, [&]<class T>() {
    launch("attention cache", elements_grid(stored, 1), stream, store_in_cache<T>, op.qkv.as<T>(),
           op.starts.i32(), op.cache.as<T>(), heads, capacity, stored);
    launch("cached attention", {dim3(static_cast<unsigned>(rows * shape.heads)), kCacheThreads},
           stream, attend<T>, op.qkv.as<T>(), op.starts.i32(), op.cache.as<T>(), op.y.as<T>(),
           heads, capacity);
  });
}

}  // namespace concertina::cuda
