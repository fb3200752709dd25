// Attention in fp32, without tensor cores: simple loops, for checks and small models. A warp has
// four of the block's rows; of each tile of 32 other rows, a lane has one while scores are made,
// and columns while weighted rows are added.
#include "core/cuda/kernels/attention.cuh"
#include "core/cuda/kernels/reduce.cuh"

namespace concertina::cuda {
namespace {

constexpr int kWarps = 8, kRows = 4, kOwn = kWarps * kRows, kOther = 32;
constexpr int kPitch = kMostHeadDim + 1;     // lanes read rows: one bank apart
constexpr int kColumns = kMostHeadDim / 32;  // of one lane
constexpr int kTile = kOther * kPitch;
constexpr unsigned kFp32Threads = kWarps * 32;
constexpr float kFp32Masked = -1e30F;
static_assert(kOwn == kOther);

/// Rows [first, first + 32) of a head, zero after its end and right of its last column.
__device__ void load_tile(float* tile, HeadRows<const float> from, int first, const Heads& heads) {
  for (int i = static_cast<int>(threadIdx.x); i < kOther * kMostHeadDim; i += kFp32Threads) {
    const int row = i / kMostHeadDim, column = i % kMostHeadDim;
    const bool there = first + row < heads.tokens && column < heads.d;
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

/// out[r][its columns] += the weights of row r times the other rows.
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

__global__ void __launch_bounds__(kFp32Threads)
    forward_fp32(const float* qkv, float* y, float* lse, Heads heads) {
  auto* q = reinterpret_cast<float*>(concertina_dynamic_shared);
  float *k = q + kTile, *v = k + kTile;
  const Int width = heads.width(), stride = 3 * width;
  const float* in = qkv + heads.in_qkv();
  const int first = static_cast<int>(blockIdx.y) * kOwn;
  const int row = first + static_cast<int>(threadIdx.x / 32) * kRows;
  load_tile(q, {in, stride}, first, heads);
  float out[kRows][kColumns] = {}, top[kRows], sum[kRows] = {};
  for (int r = 0; r < kRows; ++r) top[r] = kFp32Masked;
  for (int j = 0; j <= first; j += kOther) {
    __syncthreads();
    load_tile(k, {in + width, stride}, j, heads);
    load_tile(v, {in + 2 * width, stride}, j, heads);
    __syncthreads();
    float s[kRows];
    scores(q, k, heads.d, s);
    const int key = j + static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      s[r] = key <= row + r ? s[r] * heads.scale : kFp32Masked;
      const float largest = fmaxf(top[r], warp_max(s[r])), shrink = expf(top[r] - largest);
      s[r] = expf(s[r] - largest);
      sum[r] = sum[r] * shrink + warp_sum(s[r]);
      top[r] = largest;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) out[r][c] *= shrink;
    }
    add_weighted(s, v, heads.d, out);
  }
  float inverse[kRows];
  for (int r = 0; r < kRows; ++r) {
    inverse[r] = 1.0F / sum[r];
    if (threadIdx.x % 32 == 0 && row + r < heads.tokens)
      lse[heads.in_lse() + row + r] = top[r] + logf(sum[r]);
  }
  store_rows(out, inverse, {y + heads.in_y(), width}, first, heads);
}

// Own rows are queries (dq = ds k), or, with kKeys, keys (dk = ds^T q, dv = p^T dy).
template <bool kKeys>
__global__ void __launch_bounds__(kFp32Threads)
    backward(const float* dy, const float* qkv, const float* lse, const float* delta, float* dqkv,
             Heads heads) {
  auto* own1 = reinterpret_cast<float*>(concertina_dynamic_shared);              // q, or k
  float *own2 = own1 + kTile, *other1 = own2 + kTile, *other2 = other1 + kTile;  // dy, k, v ...
  const Int width = heads.width(), stride = 3 * width;
  const float* in = qkv + heads.in_qkv();
  const HeadRows<const float> q{in, stride}, k{in + width, stride}, v{in + 2 * width, stride},
      grad{dy + heads.in_y(), width};
  const int first = static_cast<int>(blockIdx.y) * kOwn;
  const int own = first + static_cast<int>(threadIdx.x / 32) * kRows;
  load_tile(own1, kKeys ? k : q, first, heads);
  load_tile(own2, kKeys ? v : grad, first, heads);
  float out1[kRows][kColumns] = {}, out2[kRows][kColumns] = {};
  const int end = kKeys ? heads.tokens : min(heads.tokens, first + kOwn);
  for (int j = kKeys ? first : 0; j < end; j += kOther) {
    __syncthreads();
    load_tile(other1, kKeys ? q : k, j, heads);
    load_tile(other2, kKeys ? grad : v, j, heads);
    __syncthreads();
    float p[kRows], ds[kRows];
    scores(own1, other1, heads.d, p);
    scores(own2, other2, heads.d, ds);
    const int other = j + static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int query = kKeys ? other : own + r, key = kKeys ? own + r : other;
      const bool valid = key <= query && query < heads.tokens;
      const Int at = heads.in_lse() + (valid ? query : 0);
      p[r] = valid ? expf(heads.scale * p[r] - lse[at]) : 0;
      ds[r] = valid ? heads.scale * p[r] * (ds[r] - delta[at]) : 0;
    }
    add_weighted(ds, other1, heads.d, out1);
    if constexpr (kKeys) add_weighted(p, other2, heads.d, out2);
  }
  float one[kRows];
  for (float& factor : one) factor = 1;
  float* to = dqkv + heads.in_qkv();
  store_rows(out1, one, {kKeys ? to + width : to, stride}, first, heads);
  if constexpr (kKeys) store_rows(out2, one, {to + 2 * width, stride}, first, heads);
}

}  // namespace

void attention_forward_fp32(cudaStream_t stream, const AttentionShape& shape, View qkv, View y,
                            View lse) {
  constexpr std::size_t kBytes = 3 * kTile * sizeof(float);
  allow_shared(forward_fp32, kBytes);
  launch("attention forward", {attention_blocks(shape, kOwn), kFp32Threads, kBytes}, stream,
         forward_fp32, qkv.f32(), y.f32(), lse.f32(), heads_of(shape, {}));
}

void attention_backward_fp32(cudaStream_t stream, const AttentionShape& shape, View dy, View qkv,
                             View lse, View delta, View dqkv) {
  constexpr std::size_t kBytes = 4 * kTile * sizeof(float);
  const auto run = [&](const char* name, auto* kernel) {
    allow_shared(kernel, kBytes);
    launch(name, {attention_blocks(shape, kOwn), kFp32Threads, kBytes}, stream, kernel, dy.f32(),
           qkv.f32(), lse.f32(), delta.f32(), dqkv.f32(), heads_of(shape, {}));
  };
  run("attention backward: dk, dv", backward<true>);
  run("attention backward: dq", backward<false>);
}

}  // namespace concertina::cuda
