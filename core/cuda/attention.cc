// Attention as an operator: our kernels with the scratch between them, or cuDNN's.
#include "core/cuda/attention_choice.h"
#include "core/cuda/kernels/kernels.h"
#include "core/cuda/operators.h"
#include "core/cuda/pass_graphs.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

class CudaAttention final : public Attention {
 public:
  CudaAttention(const AttentionShape& shape, Context& context)
      : Attention(shape), context_(context) {}

  void forward(const AttentionForward& op) override {
    attention_forward(context_.stream, shape(), op, place_of(op.mask));
  }

  void backward(const AttentionBackward& op) override {
    const View delta{context_.workspace.scratch(), delta_count(shape()), DType::f32};
    attention_delta(context_.stream, shape(), op.dy, op.y, delta);
    attention_backward(context_.stream, shape(), op, delta, place_of(op.mask));
  }

 private:
  const MaskPlace* place_of(const DropoutMask& mask) const {
    return mask.share > 0 ? context_.graphs->mask_place(mask.at) : nullptr;
  }

  Context& context_;
};

class CachedAttention final : public Attention {
 public:
  CachedAttention(const AttentionShape& shape, Context& context)
      : Attention(shape), context_(context) {}

  void forward(const AttentionForward& op) override {
    cached_attention(context_.stream, shape(), op);
  }

 private:
  Context& context_;
};

/// Returns null if cuDNN must not or cannot be used.
std::unique_ptr<Attention> by_dnn(const AttentionShape& shape, Context& context) {
  if (!wants_dnn(shape, context.attention)) return nullptr;
  const std::string& problem = context.dnn->problem(shape);
  if (problem.empty()) return context.dnn->make(shape, context.workspace);
  if (context.attention == AttentionBy::cudnn)
    throw_input(problem, "numerics.attention", "numerics.attention = \"auto\"");
  return nullptr;
}

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  if (shape.packed)
    throw_input("packed documents are not supported on a GPU", "data.documents",
                "run.device = \"cpu\", or data.documents = \"joined\"");
  require_heads(shape, context.attention);
  if (shape.capacity > 0) return std::make_unique<CachedAttention>(shape, context);
  std::unique_ptr<Attention> attention = by_dnn(shape, context);
  need(shape, attention != nullptr, context.workspace);
  if (attention == nullptr) attention = std::make_unique<CudaAttention>(shape, context);
  return attention;
}

}  // namespace concertina::cuda
