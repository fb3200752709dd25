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
    if (shape.head_dim > kMostHeadDim)
      throw_input(fmt::format("heads of {} columns", shape.head_dim), "model.heads",
                  fmt::format("at most {} columns a head on a GPU: more heads", kMostHeadDim));
    context.workspace.need(delta_count() * sizeof(float), 0);
  }

  void forward(View qkv, View y, View lse) override {
    attention_forward(context_.stream, shape_, qkv, y, lse);
  }

  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    const View delta{context_.workspace.scratch(), delta_count(), DType::f32};
    attention_delta(context_.stream, shape_, dy, y, delta);
    attention_backward(context_.stream, shape_, dy, qkv, lse, delta, dqkv);
  }

 private:
  std::size_t delta_count() const {
    return static_cast<std::size_t>(shape_.samples * shape_.heads * shape_.tokens);
  }

  AttentionShape shape_;
  Context& context_;
};

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  return std::make_unique<CudaAttention>(shape, context);
}

}  // namespace concertina::cuda
