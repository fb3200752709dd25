// Backward pass of attention; in bf16 on tensor cores. Two passes, one with keys as own rows for dk
// and dv, one with queries for dq: the scores are made twice, which costs 7 products instead of 5,
// but nothing is added by atomics (FlashAttention-2, Dao 2023, algorithm 2 adds dq so).
#include "core/cuda/kernels/attention_tile.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kDeltaThreads = 256;

/// Other rows of a tile: with wide heads fewer, so that the sums stay in registers.
template <int kD>
constexpr int kOtherRows = kD > 64 ? 32 : 64;

/// delta[samples,H,T]: a warp a row of a head.
template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    row_delta(const T* dy, const T* y, float* delta, Heads heads) {
  const int row = static_cast<int>(blockIdx.y * (kDeltaThreads / kWarp) + threadIdx.x / kWarp);
  if (row >= heads.tokens) return;  // the whole warp
  const Int at = heads.in_y() + row * heads.width();
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < heads.d; i += kWarp) {
    float a[1], b[1];
    load(dy + at + i, a);
    load(y + at + i, b);
    sum += a[0] * b[0];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) delta[heads.in_lse() + row] = sum;
}

/// lse (in powers of two) and delta of the queries [first, first + kRows).
template <int kRows>
__device__ void load_statistics(float* lse_tile, float* delta_tile, const float* lse,
                                const float* delta, int first, const Heads& heads) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kRows) return;
  const bool there = first + i < heads.tokens;
  lse_tile[i] = there ? lse[heads.in_lse() + first + i] * kLog2e : 0;
  delta_tile[i] = there ? delta[heads.in_lse() + first + i] : 0;
}

// Own rows are queries (dq = ds k), or, with kKeys, keys (dk = ds^T q, dv = p^T dy); then the
// tiles of scores are transposed.
template <int kD, bool kKeys>
__global__ void __launch_bounds__(kTileThreads)
    backward(const Bf16* dy, const Bf16* qkv, const float* lse, const float* delta, Bf16* dqkv,
             Heads heads) {
  constexpr int kOther = kOtherRows<kD>, kTile = kOwnRows * kRowPitch<kD>;
  __shared__ float lse_tile[kOwnRows], delta_tile[kOwnRows];        // of the queries in the tile
  auto* own1 = reinterpret_cast<Bf16*>(concertina_dynamic_shared);  // q, or k
  Bf16 *own2 = own1 + kTile, *other1 = own2 + kTile;                // dy, or v; k, or q
  Bf16* other2 = other1 + kOther * kRowPitch<kD>;                   // v, or dy
  const Int width = heads.width(), stride = 3 * width;
  const Bf16* in = qkv + heads.in_qkv();
  const HeadRows<const Bf16> q{in, stride}, k{in + width, stride}, v{in + 2 * width, stride},
      grad{dy + heads.in_y(), width};
  // The blocks with most work, of last queries or first keys, start first.
  const int first = static_cast<int>(kKeys ? blockIdx.y : gridDim.y - 1 - blockIdx.y) * kOwnRows;
  load_rows<kD, kOwnRows>(own1, kKeys ? k : q, first, heads);
  load_rows<kD, kOwnRows>(own2, kKeys ? v : grad, first, heads);
  if constexpr (!kKeys) load_statistics<kOwnRows>(lse_tile, delta_tile, lse, delta, first, heads);
  float out1[kD / 8][4] = {}, out2[kKeys ? kD / 8 : 1][4] = {};
  const int end = kKeys ? heads.tokens : min(heads.tokens, first + kOwnRows);
  for (int j = kKeys ? first : 0; j < end; j += kOther) {
    __syncthreads();
    load_rows<kD, kOther>(other1, kKeys ? q : k, j, heads);
    load_rows<kD, kOther>(other2, kKeys ? grad : v, j, heads);
    if constexpr (kKeys) load_statistics<kOther>(lse_tile, delta_tile, lse, delta, j, heads);
    __syncthreads();
    float p[kOther / 8][4], ds[kOther / 8][4];
    scores<kD, kOther>(own1, other1, p);
    scores<kD, kOther>(own2, other2, ds);
#pragma unroll
    for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int own = row_of(i), other = column_of(n, i);
        const int query = kKeys ? other : own;  // in its tile
        const int distance = kKeys ? j + other - (first + own) : first + own - (j + other);
        const bool valid = distance >= 0 && (kKeys ? j : first) + query < heads.tokens;
        p[n][i] = valid ? exp2f(p[n][i] * heads.scale * kLog2e - lse_tile[query]) : 0;
        ds[n][i] = valid ? heads.scale * p[n][i] * (ds[n][i] - delta_tile[query]) : 0;
      }
    add_weighted<kD, kOther>(ds, other1, out1);
    if constexpr (kKeys) add_weighted<kD, kOther>(p, other2, out2);
  }
  Bf16* to = dqkv + heads.in_qkv();
  store_rows<kD>(out1, 1, 1, {kKeys ? to + width : to, stride}, first, heads);
  if constexpr (kKeys) store_rows<kD>(out2, 1, 1, {to + 2 * width, stride}, first, heads);
}

}  // namespace

void attention_delta(cudaStream_t stream, const AttentionShape& shape, View dy, View y,
                     View delta) {
  with_type(shape.compute, [&]<class T>() {
    launch("attention delta", {attention_blocks(shape, kDeltaThreads / kWarp), kDeltaThreads},
           stream, row_delta<T>, dy.as<T>(), y.as<T>(), delta.f32(), heads_of(shape, {}));
  });
}

void attention_backward(cudaStream_t stream, const AttentionShape& shape, View dy, View qkv,
                        View lse, View delta, View dqkv) {
  if (shape.compute == DType::f32)
    return attention_backward_fp32(stream, shape, dy, qkv, lse, delta, dqkv);
  with_head_dim(shape.head_dim, [&]<int kD>() {
    constexpr std::size_t kBytes = tile_bytes<kD>(2 * kOwnRows + 2 * kOtherRows<kD>);
    const auto run = [&](const char* name, auto* kernel) {
      allow_shared(kernel, kBytes);
      launch(name, {attention_blocks(shape, kOwnRows), kTileThreads, kBytes}, stream, kernel,
             dy.as<Bf16>(), qkv.as<Bf16>(), lse.f32(), delta.f32(), dqkv.as<Bf16>(),
             heads_of(shape, {dy, qkv, dqkv}));
    };
    run("attention backward: dk, dv", backward<kD, true>);
    run("attention backward: dq", backward<kD, false>);
  });
}

}  // namespace concertina::cuda
