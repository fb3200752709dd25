// The operators of the CUDA backend: linear maps (linear.cc) and attention (attention.cc).
#pragma once

#include <memory>

#include "core/backend.h"
#include "core/cuda/handles.h"
#include "core/cuda/product.h"
#include "core/cuda/workspace.h"

namespace concertina::cuda {

/// What all operators of a backend share.
struct Context {
  Stream stream;
  BlasHandle blas;
  Workspace workspace;
};

/// `context` outlives the result.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cuda
