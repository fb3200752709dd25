// Forward pass of attention; in bf16 on tensor cores, with a running maximum and sum per row
// (FlashAttention-2, Dao 2023, algorithm 1).
#include "core/cuda/kernels/attention_tile.cuh"
#include "core/cuda/kernels/reduce.cuh"

namespace concertina::cuda {
namespace {

constexpr int kKeys = 64;  // per tile
constexpr float kMasked = -1e30F;

/// Returns the maximum over the four lanes that share a row.
__device__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// The running softmax of the lane's two rows, in powers of two.
template <int kD>
struct Softmax {
  float top[2] = {kMasked, kMasked}, sum[2] = {};  // sum: over the lane's columns
  float out[kD / 8][4] = {};

  /// Replaces the scores s, in powers of two, with the weights.
  __device__ void add(float (&s)[kKeys / 8][4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = top[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      largest = quad_max(largest);
      const float shrink = exp2f(top[half] - largest);
      top[half] = largest;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          s[n][i] = exp2f(s[n][i] - largest);
          sum[half] += s[n][i];
        }
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) out[n][2 * half] *= shrink, out[n][2 * half + 1] *= shrink;
    }
  }
};

template <int kD, bool kDrops>
__global__ void __launch_bounds__(kTileThreads)
    forward_bf16(const Bf16* qkv, Bf16* y, float* lse, Heads heads, ProbabilityDropout dropout) {
  if constexpr (kDrops) dropout.rule.move_to(dropout.place);
  auto* q = reinterpret_cast<Bf16*>(concertina_dynamic_shared);
  Bf16 *k = q + kOwnRows * kRowPitch<kD>, *v = k + kKeys * kRowPitch<kD>;
  const Int stride = heads.stride();
  const HeadAt at = heads.query_head();
  // The last rows have the most keys, so they start first.
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kOwnRows;
  const float scale = heads.scale * kLog2e;
  load_rows<kD, kOwnRows>(q, {qkv + at.q, stride}, first, heads.tokens, heads);
  int seen[2];  // number of keys for the lane's two rows
#pragma unroll
  for (int half = 0; half < 2; ++half) seen[half] = heads.seen(first + row_of(2 * half), at.keys);
  const int end = heads.seen(first + kOwnRows - 1, at.keys);
  Softmax<kD> softmax;
  for (int j = 0; j < end; j += kKeys) {
    __syncthreads();
    load_rows<kD, kKeys>(k, {qkv + at.k, stride}, j, at.keys, heads);
    load_rows<kD, kKeys>(v, {qkv + at.v, stride}, j, at.keys, heads);
    __syncthreads();
    float s[kKeys / 8][4];
    scores<kD, kKeys>(q, k, s);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[n][i] = j + column_of(n, i) < seen[i / 2] ? s[n][i] * scale : kMasked;
    softmax.add(s);
    if constexpr (kDrops)
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (!dropout.keeps(at, first + row_of(i), j + column_of(n, i))) s[n][i] = 0;
    add_weighted<kD, kKeys>(s, v, softmax.out);
  }
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(softmax.sum[half]);
    const int row = first + row_of(2 * half);
    inverse[half] = (kDrops ? dropout.rule.scale : 1.0F) / sum;
    if (threadIdx.x % 4 == 0 && row < heads.tokens)
      lse[at.lse + row] = softmax.top[half] * kLn2 + logf(sum);
  }
  store_rows<kD>(softmax.out, inverse[0], inverse[1], {y + at.y, heads.width()}, first, heads);
}

}  // namespace

void attention_forward(cudaStream_t stream, const AttentionShape& shape, const AttentionForward& op,
                       const MaskPlace* place) {
  if (shape.compute == DType::f32) return attention_forward_fp32(stream, shape, op, place);
  with_head_dim(shape.head_dim, [&]<int kD>() {
    constexpr std::size_t kBytes = tile_bytes<kD>(kOwnRows + 2 * kKeys);
    auto* const kernel = op.mask.share > 0 ? forward_bf16<kD, true> : forward_bf16<kD, false>;
    allow_shared(kernel, kBytes);
    launch("attention forward",
           {attention_blocks(shape, shape.heads, kOwnRows), kTileThreads, kBytes}, stream, kernel,
           op.qkv.as<Bf16>(), op.y.as<Bf16>(), op.lse.f32(),
           heads_of(shape, op.lengths, {op.qkv, op.y}), dropout_of(shape, op.mask, place));
  });
}

}  // namespace concertina::cuda
