#include "core/cpu/attention.h"

#include "core/ops.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

/// The loops of panel_attention.h over all heads.
template <class T>
class HeadAttention final : public Attention {
 public:
  HeadAttention(const AttentionShape& s, const PanelAttention<T>& loops, Context& context)
      : Attention(s), loops_(loops), context_(context) {
    const Int c = s.heads * s.head_dim;
    head_ = {s.tokens, s.head_dim, 3 * c, c};
    context.workspace.need(loops_.scratch(head_, true));
    context.workspace.need(loops_.scratch(head_, false));
  }

  void forward(const AttentionForward& op) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const T* q = op.qkv.as<T>() + row * head_.stride + at;
      loops_.forward(head_, q, q + head_.width, q + 2 * head_.width,
                     op.y.as<T>() + row * head_.width + at, op.lse.f32() + index * head_.tokens,
                     scratch);
    });
  }

  void backward(const AttentionBackward& op) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const T* q = op.qkv.as<T>() + row * head_.stride + at;
      T* dq = op.dqkv.as<T>() + row * head_.stride + at;
      const Int out = row * head_.width + at;
      loops_.backward(head_, q, q + head_.width, q + 2 * head_.width, op.y.as<T>() + out,
                      op.lse.f32() + index * head_.tokens, op.dy.as<T>() + out, dq,
                      dq + head_.width, dq + 2 * head_.width, scratch);
    });
  }

 private:
  // f(first column of the head, first row of the sample, sample * H + head, scratch)
  template <class F>
  void each_head(F&& f) {
    context_.team.each(shape().samples * shape().heads, [&](Int i, int thread) {
      f(i % shape().heads * shape().head_dim, i / shape().heads * shape().tokens, i,
        context_.workspace.of(thread));
    });
  }

  HeadShape head_;
  const PanelAttention<T>& loops_;
  const Context& context_;
};

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  if (shape.compute == DType::f32)
    return std::make_unique<HeadAttention<float>>(shape, *context.loops.attention_f32, context);
  if (context.pair_attention != nullptr && shape.head_dim % 2 == 0)
    return std::make_unique<HeadAttention<Bf16>>(shape, *context.pair_attention, context);
  return make_product_attention(shape, context);
}

}  // namespace concertina::cpu
