// Memory sizes of the CUDA backend's operators. Needs neither a GPU nor CUDA in the build: `plan`
// predicts the memory that a run reserves.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/backend.h"
#include "core/cuda/base/workspace.h"

namespace concertina::cuda {

/// Device memory that each process needs in addition to the planned memory, for code that libraries
/// such as cuBLASLt load on first use, and for CUDA graphs (an estimate).
inline constexpr std::size_t kUnplannedBytes = std::size_t{256} << 20;
/// Scratch for sums over rows and the embedding's gradient, whatever their size.
inline constexpr std::size_t kScratchBytes = std::size_t{8} << 20;
/// Scratch for cuBLASLt. It affects the choice of algorithm, so all products use the same size.
inline constexpr std::size_t kProductScratch = std::size_t{32} << 20;

/// Whether a linear map is computed in fp8. Such products need a multiple of 16 bytes along every
/// dimension; other maps use their compute type.
inline constexpr std::int64_t kFp8Run = 16;
inline bool in_fp8(const LinearShape& s) {
  return s.products == Products::fp8 && s.rows % kFp8Run == 0 && s.in % kFp8Run == 0 &&
         s.out % kFp8Run == 0;
}
/// Sizes of a scale, aligned like operands, and of a tensor's partial maxima.
inline constexpr std::size_t kScaleBytes = 16, kMaximumBytes = 2048;
/// Bytes after the product's scratch, for its input, its output gradient and their scales.
inline std::size_t fp8_scratch(const LinearShape& s) {
  return static_cast<std::size_t>(s.rows * (s.in + s.out)) + 2 * kScaleBytes + kMaximumBytes;
}

/// Weights in the compute type, shared by both directions; in fp8, one copy for each direction.
inline std::size_t packed_bytes(const LinearShape& s) {
  const auto weights = static_cast<std::size_t>(s.in * s.out);
  return in_fp8(s) ? 2 * weights + kScaleBytes : weights * size_of(s.compute);
}
inline void need(const LinearShape& s, Workspace& workspace) {
  workspace.need(std::max(kProductScratch + (in_fp8(s) ? fp8_scratch(s) : 0), kScratchBytes),
                 static_cast<std::size_t>(s.out) * size_of(s.compute));
}

/// Maximum number of columns per head in our attention kernels.
inline constexpr int kMostHeadDim = 128;
/// cuDNN needs bf16 and a multiple of 8 columns per head. It processes keys in tiles, so without a
/// causal mask, the keys must fill them. Shared keys, whose gradient cuDNN rounds per head before
/// adding, and dropout, whose mask must be the same on every backend, are left to our kernels.
inline constexpr std::int64_t kDnnRun = 8, kDnnKeys = 128;
inline bool dnn_takes(const AttentionShape& s) {
  return s.compute == DType::bf16 && s.head_dim % kDnnRun == 0 && s.tokens > 1 &&
         (s.causal || s.tokens % kDnnKeys == 0) && s.group() == 1 && !s.padded && !s.drops;
}
/// Upper bound of the scratch of a cuDNN plan, which grows with tokens squared: the gradient of the
/// scores in bf16, in tiles.
inline std::size_t dnn_plan_scratch(const AttentionShape& s) {
  const auto tokens = static_cast<std::size_t>(s.tokens);
  return static_cast<std::size_t>(s.samples * s.heads) * align_up(tokens, 64) *
             align_up(tokens, 128) * 2 +
         256;
}
/// Returns the number of sums of dy * y over a head's columns: one per row and head.
inline std::size_t delta_count(const AttentionShape& s) {
  return static_cast<std::size_t>(s.samples * s.heads * s.tokens);
}
inline void need(const AttentionShape& s, bool by_dnn, Workspace& workspace) {
  const std::size_t delta = delta_count(s) * sizeof(float);
  workspace.need(by_dnn ? align_up(dnn_plan_scratch(s)) + delta : delta, 0);
}

}  // namespace concertina::cuda
