// fp32 attention without tensor cores: simple loops for checks and small models. A warp processes
// four of the block's rows. In each tile of 32 other rows, a lane computes scores for one row and
// adds weighted rows in some columns.
#include "core/cuda/kernels/attention.cuh"
#include "core/cuda/kernels/reduce.cuh"

namespace concertina::cuda {
namespace {

constexpr int kWarps = 8, kRows = 4, kOwn = kWarps * kRows, kOther = 32;
constexpr int kPitch = kMostHeadDim + 1;     // puts rows read by different lanes one bank apart
constexpr int kColumns = kMostHeadDim / 32;  // per lane
constexpr int kTile = kOther * kPitch;
constexpr unsigned kFp32Threads = kWarps * 32;
constexpr float kFp32Masked = -1e30F;
static_assert(kOwn == kOther);

/// Loads rows [first, first + 32) of a head, with zeros from `end` on and after its last column.
__device__ void load_tile(float* tile, HeadRows<const float> from, int first, int end,
                          const Heads& heads) {
  for (int i = static_cast<int>(threadIdx.x); i < kOther * kMostHeadDim; i += kFp32Threads) {
    const int row = i / kMostHeadDim, column = i % kMostHeadDim;
    const bool there = first + row < end && column < heads.d;
    tile[row * kPitch + column] = there ? from.data[(first + row) * from.stride + column] : 0;
  }
}

/// s[r] = own row r of the warp times the lane's other row.
__device__ void scores(const float* own, const float* other, int d, float (&s)[kRows]) {
  const float* mine = own + threadIdx.x / 32 * kRows * kPitch;
  const float* theirs = other + threadIdx.x % 32 * kPitch;
#pragma unroll
  for (int r = 0; r < kRows; ++r) s[r] = 0;
  for (int i = 0; i < d; ++i)
#pragma unroll
    for (int r = 0; r < kRows; ++r) s[r] += mine[r * kPitch + i] * theirs[i];
}

/// out[r][the lane's columns] += the weights of row r times the other rows.
__device__ void add_weighted(const float (&weight)[kRows], const float* other, int d,
                             float (&out)[kRows][kColumns]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int j = 0; j < kOther; ++j)
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float w = __shfl_sync(kAllLanes, weight[r], j);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        if (32 * c < d) out[r][c] += w * other[j * kPitch + lane + 32 * c];
    }
}

__device__ void store_rows(const float (&out)[kRows][kColumns], const float (&factor)[kRows],
                           HeadRows<float> to, int first, const Heads& heads) {
  const int row = first + static_cast<int>(threadIdx.x / 32) * kRows;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int column = static_cast<int>(threadIdx.x % 32) + 32 * c;
      if (row + r < heads.tokens && column < heads.d)
        to.data[(row + r) * to.stride + column] = factor[r] * out[r][c];
    }
}

template <bool kDrops>
__global__ void __launch_bounds__(kFp32Threads)
    forward_fp32(const float* qkv, float* y, float* lse, Heads heads, ProbabilityDropout dropout) {
  if constexpr (kDrops) dropout.rule.move_to(dropout.place);
  auto* q = reinterpret_cast<float*>(concertina_dynamic_shared);
  float *k = q + kTile, *v = k + kTile;
  const Int stride = heads.stride();
  const HeadAt at = heads.query_head();
  const int first = static_cast<int>(blockIdx.y) * kOwn;
  const int row = first + static_cast<int>(threadIdx.x / 32) * kRows;
  load_tile(q, {qkv + at.q, stride}, first, heads.tokens, heads);
  float out[kRows][kColumns] = {}, top[kRows], sum[kRows] = {};
  for (int r = 0; r < kRows; ++r) top[r] = kFp32Masked;
  const int end = heads.seen(first + kOwn - 1, at.keys);
  for (int j = 0; j < end; j += kOther) {
    __syncthreads();
    load_tile(k, {qkv + at.k, stride}, j, at.keys, heads);
    load_tile(v, {qkv + at.v, stride}, j, at.keys, heads);
    __syncthreads();
    float s[kRows];
    scores(q, k, heads.d, s);
    const int key = j + static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      s[r] = key < heads.seen(row + r, at.keys) ? s[r] * heads.scale : kFp32Masked;
      const float largest = fmaxf(top[r], warp_max(s[r])), shrink = expf(top[r] - largest);
      s[r] = expf(s[r] - largest);
      sum[r] = sum[r] * shrink + warp_sum(s[r]);
      top[r] = largest;
      if constexpr (kDrops) s[r] = dropout.keeps(at, row + r, key) ? s[r] : 0;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) out[r][c] *= shrink;
    }
    add_weighted(s, v, heads.d, out);
  }
  float inverse[kRows];
  for (int r = 0; r < kRows; ++r) {
    inverse[r] = (kDrops ? dropout.rule.scale : 1.0F) / sum[r];
    if (threadIdx.x % 32 == 0 && row + r < heads.tokens)
      lse[at.lse + row + r] = top[r] + logf(sum[r]);
  }
  store_rows(out, inverse, {y + at.y, heads.width()}, first, heads);
}

// Own rows are queries (dq = ds k) or, with kKeys, keys (dk = ds^T q, dv = p^T dy).
template <bool kKeys, bool kDrops>
__global__ void __launch_bounds__(kFp32Threads)
    backward(const float* dy, const float* qkv, const float* lse, const float* delta, float* dqkv,
             Heads heads, ProbabilityDropout dropout) {
  if constexpr (kDrops) dropout.rule.move_to(dropout.place);
  auto* own1 = reinterpret_cast<float*>(concertina_dynamic_shared);              // q, or k
  float *own2 = own1 + kTile, *other1 = own2 + kTile, *other2 = other1 + kTile;  // dy, k, v ...
  const Int width = heads.width(), stride = heads.stride();
  const HeadAt mine = kKeys ? heads.key_head(0) : heads.query_head();
  const int keys = mine.keys, queries = heads.tokens;
  const int first = static_cast<int>(blockIdx.y) * kOwn;
  const int own = first + static_cast<int>(threadIdx.x / 32) * kRows;
  load_tile(own1, {qkv + (kKeys ? mine.k : mine.q), stride}, first, kKeys ? keys : queries, heads);
  if constexpr (kKeys)
    load_tile(own2, {qkv + mine.v, stride}, first, keys, heads);
  else
    load_tile(own2, {dy + mine.y, width}, first, queries, heads);
  float out1[kRows][kColumns] = {}, out2[kRows][kColumns] = {};
  const int begin = kKeys && heads.causal ? first : 0;
  const int end = !kKeys ? heads.seen(first + kOwn - 1, keys) : first < keys ? queries : 0;
  for (int head = 0; head < (kKeys ? heads.group() : 1); ++head) {
    const HeadAt at = kKeys ? heads.key_head(head) : mine;
    for (int j = begin; j < end; j += kOther) {
      __syncthreads();
      load_tile(other1, {qkv + (kKeys ? at.q : at.k), stride}, j, kKeys ? queries : keys, heads);
      if constexpr (kKeys)
        load_tile(other2, {dy + at.y, width}, j, queries, heads);
      else
        load_tile(other2, {qkv + at.v, stride}, j, keys, heads);
      __syncthreads();
      float p[kRows], ds[kRows];
      scores(own1, other1, heads.d, p);
      scores(own2, other2, heads.d, ds);
      const int other = j + static_cast<int>(threadIdx.x % 32);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int query = kKeys ? other : own + r, key = kKeys ? own + r : other;
        const bool valid = query < queries && key < heads.seen(query, keys);
        const Int row = at.lse + (valid ? query : 0);
        p[r] = valid ? expf(heads.scale * p[r] - lse[row]) : 0;
        const bool kept = !kDrops || dropout.keeps(at, query, key);
        if constexpr (kDrops) ds[r] = kept ? ds[r] * dropout.rule.scale : 0;
        ds[r] = valid ? heads.scale * p[r] * (ds[r] - delta[row]) : 0;
        if constexpr (kDrops && kKeys) p[r] = kept ? p[r] : 0;
      }
      add_weighted(ds, other1, heads.d, out1);
      if constexpr (kKeys) add_weighted(p, other2, heads.d, out2);
    }
  }
  float one[kRows], scale[kRows];
  for (int r = 0; r < kRows; ++r) one[r] = 1, scale[r] = kDrops ? dropout.rule.scale : 1;
  store_rows(out1, one, {dqkv + (kKeys ? mine.k : mine.q), stride}, first, heads);
  if constexpr (kKeys) store_rows(out2, scale, {dqkv + mine.v, stride}, first, heads);
}

}  // namespace

void attention_forward_fp32(cudaStream_t stream, const AttentionShape& shape,
                            const AttentionForward& op, const MaskPlace* place) {
  constexpr std::size_t kBytes = 3 * kTile * sizeof(float);
  auto* const kernel = op.mask.share > 0 ? forward_fp32<true> : forward_fp32<false>;
  allow_shared(kernel, kBytes);
  launch("attention forward", {attention_blocks(shape, shape.heads, kOwn), kFp32Threads, kBytes},
         stream, kernel, op.qkv.f32(), op.y.f32(), op.lse.f32(), heads_of(shape, op.lengths, {}),
         dropout_of(shape, op.mask, place));
}

void attention_backward_fp32(cudaStream_t stream, const AttentionShape& shape,
                             const AttentionBackward& op, View delta, const MaskPlace* place) {
  const bool drops = op.mask.share > 0;
  constexpr std::size_t kBytes = 4 * kTile * sizeof(float);
  const auto run = [&](const char* name, Int heads, auto* kernel) {
    allow_shared(kernel, kBytes);
    launch(name, {attention_blocks(shape, heads, kOwn), kFp32Threads, kBytes}, stream, kernel,
           op.dy.f32(), op.qkv.f32(), op.lse.f32(), delta.f32(), op.dqkv.f32(),
           heads_of(shape, op.lengths, {}), dropout_of(shape, op.mask, place));
  };
  run("attention backward: dk, dv", shape.kv(),
      drops ? backward<true, true> : backward<true, false>);
  run("attention backward: dq", shape.heads,
      drops ? backward<false, true> : backward<false, false>);
}

}  // namespace concertina::cuda
