// Attention as an operator: the kernels' order, and the scratch between them.
#include <algorithm>

#include "core/cuda/kernels.h"
#include "core/cuda/operators.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

class CudaAttention final : public Attention {
 public:
  CudaAttention(const AttentionShape& shape, Context& context) : shape_(shape), context_(context) {
    require_heads(shape);
    need(shape, context.workspace);
  }

  void forward(View qkv, View y, View lse) override {
    attention_forward(context_.stream, shape_, qkv, y, lse);
  }

  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    const View delta{context_.workspace.scratch(), delta_count(shape_), DType::f32};
    attention_delta(context_.stream, shape_, dy, y, delta);
    attention_backward(context_.stream, shape_, dy, qkv, lse, delta, dqkv);
  }

 private:
  AttentionShape shape_;
  Context& context_;
};

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  return std::make_unique<CudaAttention>(shape, context);
}

}  // namespace concertina::cuda
