#include "core/cpu/operators.h"

#include "core/cpu/run_op.h"

namespace concertina::cpu {
namespace {

/// The loops of panel_attention.h over all heads of keys.
template <class T>
class HeadAttention final : public Attention {
 public:
  HeadAttention(const AttentionShape& s, const PanelAttention<T>& loops, Context& context)
      : Attention(s), loops_(loops), context_(context) {
    HeadShape head = head_shape(s.tokens, nullptr);
    const ScoreDropout any{};
    if (s.drops) head.drop = &any;
    context.workspace.need(loops_.scratch(head, true));
    context.workspace.need(loops_.scratch(head, false));
  }

  void forward(const AttentionForward& op) override {
    require(op.lengths, op.mask);
    each_head([&](const Head& at, void* scratch) {
      const T* qkv = op.qkv.as<T>();
      const auto drop = score_dropout(shape(), op.mask, at.sample, at.head);
      loops_.forward(head_shape(length_of(shape(), op.lengths, at.sample), drop ? &*drop : nullptr),
                     qkv + at.q, qkv + at.k, qkv + at.v, op.y.as<T>() + at.y, op.lse.f32() + at.lse,
                     scratch);
    });
  }

  void backward(const AttentionBackward& op) override {
    require(op.lengths, op.mask);
    each_head([&](const Head& at, void* scratch) {
      const T* qkv = op.qkv.as<T>();
      T* grad = op.dqkv.as<T>();
      const auto drop = score_dropout(shape(), op.mask, at.sample, at.head);
      loops_.backward(
          head_shape(length_of(shape(), op.lengths, at.sample), drop ? &*drop : nullptr),
          qkv + at.q, qkv + at.k, qkv + at.v, op.y.as<T>() + at.y, op.lse.f32() + at.lse,
          op.dy.as<T>() + at.y, grad + at.q, grad + at.k, grad + at.v, scratch);
    });
  }

 private:
  /// Where one head of keys, and the first head of queries that shares it, are in the operands.
  struct Head {
    Int sample, head, q, k, v, y, lse;  // head: of queries
  };

  template <class F>
  void each_head(F&& f) {
    const AttentionShape& s = shape();
    context_.team.each(s.samples * s.kv(), [&](Int i, int thread) {
      const Int sample = i / s.kv(), row = sample * s.tokens, first = i % s.kv() * s.group();
      const Int q = row * s.qkv_width() + first * s.head_dim;
      const Int k = row * s.qkv_width() + s.width() + i % s.kv() * s.head_dim;
      f(Head{sample, first, q, k, k + s.kv_width(), row * s.width() + first * s.head_dim,
             (sample * s.heads + first) * s.tokens},
        context_.workspace.of(thread));
    });
  }

  HeadShape head_shape(Int length, const ScoreDropout* drop) const {
    const AttentionShape& s = shape();
    const SeenKeys seen = s.causal ? SeenKeys{1, 1, length} : SeenKeys{length, 0, length};
    return {s.tokens, s.head_dim, s.qkv_width(), s.width(), s.group(), seen, drop};
  }

  const PanelAttention<T>& loops_;
  const Context& context_;
};

}  // namespace

std::optional<ScoreDropout> score_dropout(const AttentionShape& shape, const DropoutMask& mask,
                                          std::int64_t sample, std::int64_t head) {
  if (mask.share == 0) return std::nullopt;
  const auto counters = static_cast<std::uint32_t>(shape.mask_row() / 4);
  return ScoreDropout{rule_of(mask, Purpose::attention_dropout),
                      mask.at.sample + static_cast<std::uint32_t>(sample),
                      static_cast<std::uint32_t>(head * shape.tokens) * counters, counters};
}

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context) {
  if (shape.compute == DType::f32)
    return std::make_unique<HeadAttention<float>>(shape, *context.loops.attention_f32, context);
  if (context.pair_attention != nullptr && shape.head_dim % 2 == 0)
    return std::make_unique<HeadAttention<Bf16>>(shape, *context.pair_attention, context);
  return make_product_attention(shape, context);
}

}  // namespace concertina::cpu
