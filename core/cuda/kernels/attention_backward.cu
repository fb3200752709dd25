// Backward pass of attention; in bf16 on tensor cores. There are two passes, one that owns keys for
// dk and dv, and one that owns queries for dq. Computing the scores twice costs 7 products instead
// of 5, but needs no atomic additions, unlike dq in FlashAttention-2 (Dao 2023, algorithm 2).
#include "core/cuda/kernels/attention_tile.cuh"
#include "core/cuda/kernels/reduce.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kDeltaThreads = 256;

/// Number of other rows per tile: fewer for wide heads, so that the sums stay in registers.
template <int kD>
constexpr int kOtherRows = kD > 64 ? 32 : 64;

/// Computes delta[samples,H,T], one warp per row of a head.
template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    row_delta(const T* dy, const T* y, float* delta, Heads heads) {
  const int row = static_cast<int>(blockIdx.y * (kDeltaThreads / kWarp) + threadIdx.x / kWarp);
  if (row >= heads.tokens) return;  // uniform across the warp
  const HeadAt head = heads.query_head();
  const Int at = head.y + row * heads.width();
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < heads.d; i += kWarp) {
    float a[1], b[1];
    load(dy + at + i, a);
    load(y + at + i, b);
    sum += a[0] * b[0];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) delta[head.lse + row] = sum;
}

/// Loads lse (in powers of two) and delta of the queries [first, first + kRows) before `end`.
template <int kRows>
__device__ void load_statistics(float* lse_tile, float* delta_tile, const float* lse,
                                const float* delta, int first, int end) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kRows) return;
  const bool there = first + i < end;
  lse_tile[i] = there ? lse[first + i] * kLog2e : 0;
  delta_tile[i] = there ? delta[first + i] : 0;
}

// Own rows are queries (dq = ds k) or, with kKeys, keys (dk = ds^T q, dv = p^T dy), in which case
// the tiles of scores are transposed.
template <int kD, bool kKeys, bool kDrops>
__global__ void __launch_bounds__(kTileThreads)
    backward(const Bf16* dy, const Bf16* qkv, const float* lse, const float* delta, Bf16* dqkv,
             Heads heads, ProbabilityDropout dropout) {
  if constexpr (kDrops) dropout.rule.move_to(dropout.place);
  constexpr int kOther = kOtherRows<kD>, kTile = kOwnRows * kRowPitch<kD>;
  __shared__ float lse_tile[kOwnRows], delta_tile[kOwnRows];        // for the tile's queries
  auto* own1 = reinterpret_cast<Bf16*>(concertina_dynamic_shared);  // q, or k
  Bf16 *own2 = own1 + kTile, *other1 = own2 + kTile;                // dy, or v; k, or q
  Bf16* other2 = other1 + kOther * kRowPitch<kD>;                   // v, or dy
  const Int width = heads.width(), stride = heads.stride();
  const HeadAt own = kKeys ? heads.key_head(0) : heads.query_head();
  const int keys = own.keys, queries = heads.tokens;
  // The blocks with the most work (last queries or first keys) start first.
  const int first = static_cast<int>(kKeys ? blockIdx.y : gridDim.y - 1 - blockIdx.y) * kOwnRows;
  load_rows<kD, kOwnRows>(own1, {qkv + (kKeys ? own.k : own.q), stride}, first,
                          kKeys ? keys : queries, heads);
  if constexpr (kKeys)
    load_rows<kD, kOwnRows>(own2, {qkv + own.v, stride}, first, keys, heads);
  else
    load_rows<kD, kOwnRows>(own2, {dy + own.y, width}, first, queries, heads);
  if constexpr (!kKeys)
    load_statistics<kOwnRows>(lse_tile, delta_tile, lse + own.lse, delta + own.lse, first, queries);
  int bound[2];  // for the lane's two own rows: first or end of the other rows
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + row_of(2 * half);
    bound[half] = kKeys ? heads.first_to_see(row, keys) : heads.seen(row, keys);
  }
  float out1[kD / 8][4] = {}, out2[kKeys ? kD / 8 : 1][4] = {};
  const int begin = kKeys && heads.causal ? first : 0;
  const int end = !kKeys ? heads.seen(first + kOwnRows - 1, keys) : first < keys ? queries : 0;
  for (int head = 0; head < (kKeys ? heads.group() : 1); ++head) {
    const HeadAt at = kKeys ? heads.key_head(head) : own;
    for (int j = begin; j < end; j += kOther) {
      __syncthreads();
      load_rows<kD, kOther>(other1, {qkv + (kKeys ? at.q : at.k), stride}, j,
                            kKeys ? queries : keys, heads);
      if constexpr (kKeys) {
        load_rows<kD, kOther>(other2, {dy + at.y, width}, j, queries, heads);
        load_statistics<kOther>(lse_tile, delta_tile, lse + at.lse, delta + at.lse, j, queries);
      } else {
        load_rows<kD, kOther>(other2, {qkv + at.v, stride}, j, keys, heads);
      }
      __syncthreads();
      float p[kOther / 8][4], ds[kOther / 8][4];
      scores<kD, kOther>(own1, other1, p);
      scores<kD, kOther>(own2, other2, ds);
#pragma unroll
      for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int other = j + column_of(n, i);
          const int query = kKeys ? column_of(n, i) : row_of(i);  // within its tile
          const bool valid =
              kKeys ? other >= bound[i / 2] && other < queries : other < bound[i / 2];
          p[n][i] = valid ? exp2f(p[n][i] * heads.scale * kLog2e - lse_tile[query]) : 0;
          const bool kept = !kDrops || dropout.keeps(at, kKeys ? other : first + query,
                                                     kKeys ? first + row_of(i) : other);
          if constexpr (kDrops) ds[n][i] = kept ? ds[n][i] * dropout.rule.scale : 0;
          ds[n][i] = valid ? heads.scale * p[n][i] * (ds[n][i] - delta_tile[query]) : 0;
          if constexpr (kDrops && kKeys) p[n][i] = kept ? p[n][i] : 0;
        }
      add_weighted<kD, kOther>(ds, other1, out1);
      if constexpr (kKeys) add_weighted<kD, kOther>(p, other2, out2);
    }
  }
  store_rows<kD>(out1, 1, 1, {dqkv + (kKeys ? own.k : own.q), stride}, first, heads);
  const float scale = kDrops ? dropout.rule.scale : 1;
  if constexpr (kKeys) store_rows<kD>(out2, scale, scale, {dqkv + own.v, stride}, first, heads);
}

}  // namespace

void attention_delta(cudaStream_t stream, const AttentionShape& shape, View dy, View y,
                     View delta) {
  with_type(shape.compute, [&]<class T>() {
    launch("attention delta",
           {attention_blocks(shape, shape.heads, kDeltaThreads / kWarp), kDeltaThreads}, stream,
           row_delta<T>, dy.as<T>(), y.as<T>(), delta.f32(), heads_of(shape, {}, {}));
  });
}

void attention_backward(cudaStream_t stream, const AttentionShape& shape,
                        const AttentionBackward& op, View delta, const MaskPlace* place) {
  if (shape.compute == DType::f32) return attention_backward_fp32(stream, shape, op, delta, place);
  const bool drops = op.mask.share > 0;
  with_head_dim(shape.head_dim, [&]<int kD>() {
    constexpr std::size_t kBytes = tile_bytes<kD>(2 * kOwnRows + 2 * kOtherRows<kD>);
    const auto run = [&](const char* name, Int heads, auto* kernel) {
      allow_shared(kernel, kBytes);
      launch(name, {attention_blocks(shape, heads, kOwnRows), kTileThreads, kBytes}, stream, kernel,
             op.dy.as<Bf16>(), op.qkv.as<Bf16>(), op.lse.f32(), delta.f32(), op.dqkv.as<Bf16>(),
             heads_of(shape, op.lengths, {op.dy, op.qkv, op.dqkv}),
             dropout_of(shape, op.mask, place));
    };
    run("attention backward: dk, dv", shape.kv(),
        drops ? backward<kD, true, true> : backward<kD, true, false>);
    run("attention backward: dq", shape.heads,
        drops ? backward<kD, false, true> : backward<kD, false, false>);
  });
}

}  // namespace concertina::cuda
