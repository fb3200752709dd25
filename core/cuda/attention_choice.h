// Whose kernels do attention of a shape. Needs no CUDA in the build: `plan` chooses as a run does.
#pragma once

#include "core/cuda/backend.h"
#include "core/cuda/base/sizes.h"

namespace concertina::cuda {

/// Beyond this, attention is our own unless cuDNN's is asked for.
inline constexpr std::size_t kMostDnnScratch = std::size_t{2} << 30;
inline bool wants_dnn(const AttentionShape& s, AttentionBy by) {
  return by != AttentionBy::own && dnn_takes(s) &&
         (by == AttentionBy::cudnn || dnn_plan_scratch(s) <= kMostDnnScratch);
}
/// Throws Error{bad_input} for heads that are too wide, and for a shape that cuDNN cannot take
/// where it is asked for.
void require_heads(const AttentionShape& shape, AttentionBy by);

}  // namespace concertina::cuda
