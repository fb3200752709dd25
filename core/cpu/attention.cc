#include "core/cpu/attention.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

/// The loops of panel_attention.cc over all heads.
class HeadAttention final : public Attention {
 public:
  HeadAttention(const AttentionShape& s, Context& context)
      : shape_(s), loops_(*context.loops.attention_f32), context_(context) {
    const Int c = s.heads * s.head_dim;
    head_ = {s.tokens, s.head_dim, 3 * c, c};
    context.workspace.need(loops_.scratch(head_, true));
    context.workspace.need(loops_.scratch(head_, false));
  }

  void forward(View qkv, View y, View lse) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const float* q = qkv.f32() + row * head_.stride + at;
      loops_.forward(head_, q, q + head_.width, q + 2 * head_.width,
                     y.f32() + row * head_.width + at, lse.f32() + index * head_.tokens, scratch);
    });
  }

  void backward(View dy, View qkv, View y, View lse, View dqkv) override {
    each_head([&](Int at, Int row, Int index, void* scratch) {
      const float* q = qkv.f32() + row * head_.stride + at;
      float* dq = dqkv.f32() + row * head_.stride + at;
      const Int out = row * head_.width + at;
      loops_.backward(head_, q, q + head_.width, q + 2 * head_.width, y.f32() + out,
                      lse.f32() + index * head_.tokens, dy.f32() + out, dq, dq + head_.width,
                      dq + 2 * head_.width, scratch);
    });
  }

 private:
  // f(first column of the head, first row of the sample, sample * H + head, scratch)
  template <class F>
  void each_head(F&& f) {
    context_.team.each(shape_.samples * shape_.heads, [&](Int i, int thread) {
      f(i % shape_.heads * shape_.head_dim, i / shape_.heads * shape_.tokens, i,
        context_.workspace.of(thread));
    });
  }

  AttentionShape shape_;
  HeadShape head_;
  const PanelAttention& loops_;
  const Context& context_;
};

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  if (shape.compute == DType::bf16) return make_product_attention(shape, context);
  return std::make_unique<HeadAttention>(shape, context);
}

}  // namespace concertina::cpu
