// What the operators of the CUDA backend take in bytes. Needs no GPU, nor CUDA in the build: the
// memory that `plan` predicts is what a run reserves.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/backend.h"
#include "core/cuda/workspace.h"

namespace concertina::cuda {

/// Scratch that sums over rows and the embedding's gradient may need, at any size.
inline constexpr std::size_t kScratchBytes = std::size_t{8} << 20;
/// Scratch that cuBLASLt may use; part of what decides the algorithm, so one size for all.
inline constexpr std::size_t kProductScratch = std::size_t{32} << 20;

/// Weights in the compute type; both directions read them, one transposed.
inline std::size_t packed_bytes(const LinearShape& s) {
  return static_cast<std::size_t>(s.in * s.out) * size_of(s.compute);
}
inline void need(const LinearShape& s, Workspace& workspace) {
  workspace.need(std::max(kProductScratch, kScratchBytes),
                 static_cast<std::size_t>(s.out) * size_of(s.compute));
}

/// Columns of a head that attention's kernels hold.
inline constexpr int kMostHeadDim = 128;
/// Throws Error{bad_input} for wider heads.
void require_heads(const AttentionShape& shape);
/// Of the sums of dy * y over a head's columns, one a row and head.
inline std::size_t delta_count(const AttentionShape& s) {
  return static_cast<std::size_t>(s.samples * s.heads * s.tokens);
}
inline void need(const AttentionShape& s, Workspace& workspace) {
  workspace.need(delta_count(s) * sizeof(float), 0);
}

}  // namespace concertina::cuda
