// What the attention kernels share: where the rows of a head lie, and their grid.
//
// Legend: T tokens, C width, H heads, D head dimension. A block has some rows of one head of one
// sample, its own (queries, or keys in the pass that makes dk and dv), and meets the other rows
// (keys, or queries) tile by tile, in order: no atomics, so the bits are always the same.
#pragma once

#include <cmath>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"

namespace concertina::cuda {

/// By value to kernels. Pointers are to the first element of the tensor.
struct Heads {
  int tokens, heads, d;
  float scale;   // of the scores: 1 / sqrt(D)
  bool vectors;  // rows may be read 16 bytes at a time

  __device__ Int width() const { return Int{heads} * d; }
  /// Offset of the head of block x in qkv[R,3C] and in y[R,C]; of its row in lse[samples,H,T].
  __device__ Int in_qkv() const { return offset(3 * width()); }
  __device__ Int in_y() const { return offset(width()); }
  __device__ Int in_lse() const { return static_cast<Int>(blockIdx.x) * tokens; }

 private:
  __device__ Int offset(Int stride) const {
    const Int sample = blockIdx.x / static_cast<unsigned>(heads);
    const Int head = blockIdx.x % static_cast<unsigned>(heads);
    return sample * tokens * stride + head * d;
  }
};

/// The rows of a head in a tensor: row t at data + t stride, D elements.
template <class T>
struct HeadRows {
  T* data;
  Int stride;
};

inline Heads heads_of(const AttentionShape& s, std::initializer_list<View> buffers) {
  const auto bytes = s.head_dim * static_cast<Int>(size_of(s.compute));
  return {static_cast<int>(s.tokens), static_cast<int>(s.heads), static_cast<int>(s.head_dim),
          1.0F / std::sqrt(static_cast<float>(s.head_dim)), aligned(buffers) && bytes % 16 == 0};
}

/// x: heads of samples, y: runs of `own` rows.
inline dim3 attention_blocks(const AttentionShape& s, Int own) {
  return dim3(static_cast<unsigned>(s.samples * s.heads), blocks_for(s.tokens, own));
}

/// Kernels want more shared memory than they get unasked.
template <class F>
void allow_shared(F* kernel, std::size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "cudaFuncSetAttribute");
}

// fp32, in attention_fp32.cu.
void attention_forward_fp32(cudaStream_t stream, const AttentionShape& shape, View qkv, View y,
                            View lse);
void attention_backward_fp32(cudaStream_t stream, const AttentionShape& shape, View dy, View qkv,
                             View lse, View delta, View dqkv);

}  // namespace concertina::cuda

/// Dynamic shared memory of a block.
extern __shared__ unsigned char concertina_dynamic_shared[];
