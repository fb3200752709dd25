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
  std::unique_ptr<DnnAttentions> dnn = nullptr;  // if attention may use cuDNN
  PassGraphs* graphs = nullptr;                  // provides the locations of masks
};

/// `context` must outlive the result.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);
/// Sets up `context` for attention on its device. Throws Error{bad_input} if cuDNN is requested but
/// missing. If cuDNN is optional, logs why it is not used.
void choose_attention(AttentionBy by, int device, Context& context);
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cuda
