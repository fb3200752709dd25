// Selects the attention kernels for a shape. Needs no CUDA in the build, because `plan` uses it.
#pragma once

#include "core/cuda/backend.h"
#include "core/cuda/base/sizes.h"

namespace concertina::cuda {

/// Above this scratch size, our kernels are used unless cuDNN's are requested explicitly.
inline constexpr std::size_t kMostDnnScratch = std::size_t{2} << 30;
inline bool wants_dnn(const AttentionShape& s, AttentionBy by) {
  return by != AttentionBy::own && dnn_takes(s) &&
         (by == AttentionBy::cudnn || dnn_plan_scratch(s) <= kMostDnnScratch);
}
/// Throws Error{bad_input} for heads that are too wide and, if cuDNN is requested explicitly, for
/// shapes that it does not support.
void require_heads(const AttentionShape& shape, AttentionBy by);

}  // namespace concertina::cuda
