// Casts to fp8 with one scale per tensor, in two passes: the largest magnitude, then the cast, with
// or without a transpose.
//
// The scale is the largest power of two that keeps the tensor in range. Scaling is exact,
// and a maximum does not depend on order, so the bits depend only on the tensor. An infinity, which
// E4M3 lacks, makes the scale 0 and becomes NaN, which shows in the loss as it would in bf16.
//
// Dimensions: R rows, C columns, both multiples of 16.
#include <cuda_fp8.h>

#include <cmath>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

template <Format kFormat>
constexpr float kMostFp8 = kFormat == Format::e4m3 ? 448.0F : 57344.0F;

/// Returns four floats as four bytes of fp8 (an instruction since compute capability 8.9), `a` in
/// the lowest byte: rounded to nearest, ties to even; saturated; NaN stays NaN.
template <Format kFormat>
__device__ std::uint32_t pack_fp8(float a, float b, float c, float d) {
  constexpr auto kKind = kFormat == Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kKind);
  const std::uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kKind);
  return low | high << 16;
}

constexpr unsigned kCastThreads = 256, kMostParts = kMaximumBytes / sizeof(float);
constexpr int kTileRows = 128, kTileColumns = 64;

/// Elements per 16-byte access.
template <class T>
constexpr int kAccess = 16 / sizeof(T);

/// parts[block] = the largest magnitude in the block, ignoring NaN.
template <class T>
__global__ void __launch_bounds__(kCastThreads) largest_parts(const T* x, Int count, float* parts) {
  constexpr int N = kAccess<T>;
  const Int step = static_cast<Int>(gridDim.x) * kCastThreads * N;
  float largest = 0;
#pragma unroll 4
  for (Int i = (static_cast<Int>(blockIdx.x) * kCastThreads + threadIdx.x) * N; i < count;
       i += step) {
    float v[N];
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; ++k) largest = fmaxf(largest, fabsf(v[k]));
  }
  largest = block_max(largest);
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

/// Returns the scale factor of the tensor. The first block writes its inverse to `undo`.
template <Format kFormat>
__device__ float tensor_scale(const float* parts, unsigned count, float* undo) {
  float largest = 0;
  for (unsigned i = threadIdx.x; i < count; i += kCastThreads) largest = fmaxf(largest, parts[i]);
  largest = block_max(largest);
  float scale = 1;
  if (largest == INFINITY)
    scale = 0;
  else if (largest > 0)  // at most 2^126, so that the inverse is a normal number
    scale = scalbnf(1, ilogbf(fminf(kMostFp8<kFormat> / largest, 0x1p126F)));
  if (threadIdx.x == 0 && blockIdx.x == 0 && blockIdx.y == 0) *undo = scale == 0 ? 1 : 1 / scale;
  return scale;
}

/// Casts K elements from x on, four per word.
template <Format kFormat, int K, class T>
__device__ void cast_run(const T* x, float scale, std::uint32_t (&words)[K / 4]) {
  constexpr int N = kAccess<T>;
#pragma unroll
  for (int i = 0; i < K; i += N) {
    float v[N];
    load(x + i, v);
#pragma unroll
    for (int k = 0; k < N; k += 4)
      words[(i + k) / 4] =
          pack_fp8<kFormat>(scale * v[k], scale * v[k + 1], scale * v[k + 2], scale * v[k + 3]);
  }
}

/// straight[R,C] = x[R,C].
template <Format kFormat, class T>
__global__ void __launch_bounds__(kCastThreads)
    cast_straight(const T* x, Int count, const float* parts, unsigned part_count, Quantized to) {
  const float scale = tensor_scale<kFormat>(parts, part_count, to.scale);
  const Int i = (static_cast<Int>(blockIdx.x) * kCastThreads + threadIdx.x) * 16;
  if (i >= count) return;
  std::uint32_t w[4];
  cast_run<kFormat, 16>(x + i, scale, w);
  *reinterpret_cast<uint4*>(static_cast<std::uint8_t*>(to.straight) + i) =
      make_uint4(w[0], w[1], w[2], w[3]);
}

/// Returns the byte at `shift` of each of four rows; the first row's is the lowest byte.
__device__ inline std::uint32_t column_of(const std::uint32_t (&rows)[4][2], int word, int shift) {
  std::uint32_t column = 0;
#pragma unroll
  for (int r = 0; r < 4; ++r) column |= (rows[r][word] >> shift & 0xFFU) << 8 * r;
  return column;
}

/// flipped[C,R] = x[R,C]^T, and straight[R,C] unless it is null. A thread casts 4 rows of 8
/// columns; the tile in shared memory has one word per 4 rows of a column. Columns are 33 words
/// apart, so that the 4 columns x 8 words that a warp accesses at once are in different banks.
template <Format kFormat, class T>
__global__ void __launch_bounds__(kCastThreads)
    cast_flipped(const T* x, Int rows, Int columns, const float* parts, unsigned part_count,
                 Quantized to) {
  __shared__ std::uint32_t tile[kTileColumns][kTileRows / 4 + 1];
  const float scale = tensor_scale<kFormat>(parts, part_count, to.scale);
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned column = (warp % 2 * 4 + lane % 4) * 8, row = (warp / 2 * 8 + lane / 4) * 4;
  const Int left = static_cast<Int>(blockIdx.x) * kTileColumns;
  const Int top = static_cast<Int>(blockIdx.y) * kTileRows;
  if (top + row < rows && left + column < columns) {
    std::uint32_t words[4][2];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const Int at = (top + row + r) * columns + left + column;
      cast_run<kFormat, 8>(x + at, scale, words[r]);
      if (to.straight != nullptr)
        *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(to.straight) + at) =
            make_uint2(words[r][0], words[r][1]);
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) tile[column + c][row / 4] = column_of(words, c / 4, c % 4 * 8);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kTileColumns * kTileRows / 16; i += kCastThreads) {
    const unsigned c = i / (kTileRows / 16), r = i % (kTileRows / 16) * 16;
    if (left + c >= columns || top + r >= rows) continue;
    const std::uint32_t* w = &tile[c][r / 4];
    *reinterpret_cast<uint4*>(static_cast<std::uint8_t*>(to.flipped) + (left + c) * rows + top +
                              r) = make_uint4(w[0], w[1], w[2], w[3]);
  }
}

template <Format kFormat, class T>
void run(cudaStream_t stream, const T* x, Int rows, Int columns, const Quantized& to,
         float* parts) {
  const Int count = rows * columns;
  const unsigned part_count =
      std::min(kMostParts, blocks_for(count, kCastThreads * kAccess<T> * 4));
  launch("fp8 scale", {dim3(part_count), kCastThreads}, stream, largest_parts<T>, x, count, parts);
  if (to.flipped == nullptr)
    launch("fp8 cast", {dim3(blocks_for(count, kCastThreads * 16)), kCastThreads}, stream,
           cast_straight<kFormat, T>, x, count, parts, part_count, to);
  else
    launch("fp8 cast, transposed",
           {dim3(blocks_for(columns, kTileColumns), blocks_for(rows, kTileRows)), kCastThreads},
           stream, cast_flipped<kFormat, T>, x, rows, columns, parts, part_count, to);
}

}  // namespace

void quantize(cudaStream_t stream, View x, std::int64_t columns, Format format, const Quantized& to,
              void* scratch) {
  const Int rows = static_cast<Int>(x.count) / columns;
  with_type(x.dtype, [&]<class T>() {
    auto* parts = static_cast<float*>(scratch);
    format == Format::e4m3 ? run<Format::e4m3>(stream, x.as<T>(), rows, columns, to, parts)
                           : run<Format::e5m2>(stream, x.as<T>(), rows, columns, to, parts);
  });
}

}  // namespace concertina::cuda
