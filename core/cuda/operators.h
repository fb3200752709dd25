// The operators of the CUDA backend: linear maps (linear.cc) and attention (attention.cc).
#pragma once

#include <memory>

#include "core/backend.h"
#include "core/cuda/backend.h"
#include "core/cuda/base/handles.h"
#include "core/cuda/base/workspace.h"
#include "core/cuda/dnn/attention.h"
#include "core/cuda/product.h"

namespace concertina::cuda {

class PassGraphs;

/// Shared by all operators of a backend.
struct Context {
  Stream stream;
  BlasHandle blas;
  Workspace workspace;
  AttentionBy attention = AttentionBy::own;
  std::unique_ptr<DnnAttentions> dnn = nullptr;  // where attention may be cuDNN's
  PassGraphs* graphs = nullptr;                  // which know where masks are
};

/// `context` outlives the result.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);
/// Sets up `context` for attention's operators on its device. Throws Error{bad_input} where cuDNN
/// is asked for and is not there; where it only may be used, logs why it is not.
void choose_attention(AttentionBy by, int device, Context& context);
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cuda
