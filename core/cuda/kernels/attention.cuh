// What the attention kernels share: the location of a head's rows, the keys that a query sees, and
// the grid.
//
// Dimensions: T tokens, H query heads, K key heads, D head dimension. A block owns some rows of one
// head of one sample (queries, or keys in the pass for dk and dv), and processes the other rows
// (keys, or queries of all heads that share its keys) tile by tile, in order. There are no atomics,
// so results are always bit-identical.
#pragma once

#include <cmath>

#include "core/cuda/kernels/dropout.cuh"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"

namespace concertina::cuda {

/// Offsets of the first elements of a query head and of its keys and values in qkv[R,(H+2K)D],
/// y[R,HD] and lse[samples,H,T]; and the number of keys of the sample that are not padding.
struct HeadAt {
  Int q, k, v, y, lse;
  int keys, sample, head;  // `head` is a query head
};

/// Passed to kernels by value.
struct Heads {
  int tokens, heads, kv, d;
  float scale;                  // scale of the scores: 1 / sqrt(D)
  bool causal, vectors;         // vectors: rows allow 16-byte accesses
  const std::int32_t* lengths;  // sample lengths; may be null

  __device__ Int width() const { return Int{heads} * d; }
  __device__ Int stride() const { return Int{heads + 2 * kv} * d; }  // row stride of qkv
  __device__ int group() const { return heads / kv; }
  /// Returns the query head that block x computes.
  __device__ HeadAt query_head() const {
    return at(static_cast<int>(blockIdx.x) / heads, static_cast<int>(blockIdx.x) % heads);
  }
  /// Returns the i-th query head that shares the key head of block x.
  __device__ HeadAt key_head(int i) const {
    return at(static_cast<int>(blockIdx.x) / kv, static_cast<int>(blockIdx.x) % kv * group() + i);
  }
  /// Returns the number of keys that a query sees.
  __device__ int seen(int query, int keys) const { return causal ? min(query + 1, keys) : keys; }
  /// Returns the first query that sees a key, or one after the last if there is none.
  __device__ int first_to_see(int key, int keys) const {
    return key >= keys ? tokens : causal ? key : 0;
  }

 private:
  __device__ HeadAt at(int sample, int head) const {
    const Int row = Int{sample} * tokens, q = row * stride() + head * d,
              k = row * stride() + (heads + head / group()) * d;
    return {q,
            k,
            k + kv * d,
            row * width() + head * d,
            (Int{sample} * heads + head) * tokens,
            lengths == nullptr ? tokens : min(max(lengths[sample], 1), tokens),
            sample,
            head};
  }
};

/// Dropout of probabilities, passed to kernels by value. Kernels without dropout get a rule
/// that drops nothing.
struct ProbabilityDropout {
  DropoutRule rule;
  std::uint32_t tokens, row;  // row: counters per query
  const MaskPlace* place;

  __device__ bool keeps(const HeadAt& at, int query, int key) const {
    const std::uint32_t first =
        (static_cast<std::uint32_t>(at.head) * tokens + static_cast<std::uint32_t>(query)) * row;
    return rule.words(static_cast<std::uint32_t>(at.sample),
                      first + static_cast<std::uint32_t>(key) / 4)[key % 4] >= rule.threshold;
  }
};

inline ProbabilityDropout dropout_of(const AttentionShape& s, const DropoutMask& mask,
                                     const MaskPlace* place) {
  return {rule_of(mask, Purpose::attention_dropout), static_cast<std::uint32_t>(s.tokens),
          static_cast<std::uint32_t>(s.mask_row() / 4), place};
}

/// The rows of a head in a tensor: row t at data + t stride, D elements.
template <class T>
struct HeadRows {
  T* data;
  Int stride;
};

inline Heads heads_of(const AttentionShape& s, View lengths, std::initializer_list<View> buffers) {
  const auto bytes = s.head_dim * static_cast<Int>(size_of(s.compute));
  return {static_cast<int>(s.tokens),
          static_cast<int>(s.heads),
          static_cast<int>(s.kv()),
          static_cast<int>(s.head_dim),
          1.0F / std::sqrt(static_cast<float>(s.head_dim)),
          s.causal,
          aligned(buffers) && bytes % 16 == 0,
          lengths.i32()};
}

/// x: `heads` per sample; y: runs of `own` rows.
inline dim3 attention_blocks(const AttentionShape& s, Int heads, Int own) {
  return dim3(static_cast<unsigned>(s.samples * heads), blocks_for(s.tokens, own));
}

/// Allows a kernel more dynamic shared memory than the default.
template <class F>
void allow_shared(F* kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "cudaFuncSetAttribute");
}

// fp32, in attention_fp32.cu.
void attention_forward_fp32(cudaStream_t stream, const AttentionShape& shape,
                            const AttentionForward& op, const MaskPlace* place);
void attention_backward_fp32(cudaStream_t stream, const AttentionShape& shape,
                             const AttentionBackward& op, View delta, const MaskPlace* place);

}  // namespace concertina::cuda

/// Dynamic shared memory of a block.
extern __shared__ unsigned char concertina_dynamic_shared[];
