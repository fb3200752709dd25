#include "core/cpu/operators.h"

#include "core/cpu/run_op.h"
#include "core/error.h"

namespace concertina::cpu {
namespace {

/// The loops of panel_attention.h over all key heads.
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
    each_head(shape(), context_.team, [&](const HeadOffsets& at, int thread) {
      const T* qkv = op.qkv.as<T>();
      each_document(op, at, [&](const HeadOffsets& of, const HeadShape& head) {
        loops_.forward(head, qkv + of.q, qkv + of.k, qkv + of.v, op.y.as<T>() + of.y,
                       op.lse.f32() + of.lse, context_.workspace.of(thread));
      });
    });
  }

  void backward(const AttentionBackward& op) override {
    each_head(shape(), context_.team, [&](const HeadOffsets& at, int thread) {
      const T* qkv = op.qkv.as<T>();
      T* grad = op.dqkv.as<T>();
      each_document(op, at, [&](const HeadOffsets& of, const HeadShape& head) {
        loops_.backward(head, qkv + of.q, qkv + of.k, qkv + of.v, op.y.as<T>() + of.y,
                        op.lse.f32() + of.lse, op.dy.as<T>() + of.y, grad + of.q, grad + of.k,
                        grad + of.v, context_.workspace.of(thread));
      });
    });
  }

 private:
  /// Calls f(offsets, shape) for the head, or for each of its documents as if it were a sample:
  /// masked parts are not computed, and the results are bit-identical.
  template <class F>
  void each_document(const auto& op, const HeadOffsets& at, F&& f) const {
    const AttentionShape& s = shape();
    auto drop = score_dropout(s, op.mask, at.sample, at.head);
    const ScoreDropout* const dropped = drop ? &*drop : nullptr;
    if (!s.packed) return f(at, head_shape(length_of(s, op.lengths, at.sample), dropped));
    const std::int32_t* const starts = op.starts.i32() + at.sample * s.tokens;
    const std::uint32_t first = drop ? drop->first : 0;
    for (Int begin = 0, end = 0; begin < s.tokens; begin = end) {
      while (end < s.tokens && starts[end] == starts[begin]) ++end;
      if (drop) drop->first = first + static_cast<std::uint32_t>(begin) * drop->row;
      const Int in_qkv = begin * s.qkv_width(), in_y = begin * s.width();
      HeadShape head = head_shape(end - begin, dropped);
      head.tokens = end - begin;
      f(HeadOffsets{at.sample, at.head, at.q + in_qkv, at.k + in_qkv, at.v + in_qkv, at.y + in_y,
                    at.lse + begin},
        head);
    }
  }

  HeadShape head_shape(Int length, const ScoreDropout* drop) const {
    const AttentionShape& s = shape();
    const SeenKeys seen = s.causal ? SeenKeys{1, 1, length} : SeenKeys{length, 0, length};
    return {s.tokens, s.head_dim, s.qkv_width(), s.width(), s.group(), s.tokens, seen, drop};
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
  if (shape.capacity > 0) return make_cached_attention(shape, context);
  if (shape.compute == DType::f32)
    return std::make_unique<HeadAttention<float>>(shape, *context.loops.attention_f32, context);
  if (context.pair_attention != nullptr && shape.head_dim % 2 == 0)
    return std::make_unique<HeadAttention<Bf16>>(shape, *context.pair_attention, context);
  if (!shape.packed) return make_product_attention(shape, context);
  if (context.packed_attention == nullptr || shape.head_dim % 2 != 0)
    throw_input("bf16 attention over packed documents requires AVX512-BF16 and an even head size",
                "data.documents", "numerics.compute = \"fp32\", or data.documents = \"joined\"");
  return std::make_unique<HeadAttention<Bf16>>(shape, *context.packed_attention, context);
}

}  // namespace concertina::cpu
