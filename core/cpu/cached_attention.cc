// Attention with a cache of keys and values (AttentionShape::capacity).
#include "core/cpu/operators.h"
#include "core/cpu/run_op.h"
#include "core/error.h"

namespace concertina::cpu {
namespace {

/// One query at a time: with a cache, reading the keys and values takes longer than the products.
template <class T>
class CachedAttention final : public Attention {
 public:
  CachedAttention(const AttentionShape& s, AttendRow<T> attend, Context& context)
      : Attention(s), attend_(attend), context_(context) {
    context.workspace.need(attend_row_scratch(s.capacity, s.head_dim) * sizeof(float));
  }

  void forward(const AttentionForward& op) override {
    const AttentionShape& s = shape();
    context_.team.each(s.samples * s.kv(), [&](std::int64_t i, int thread) {
      const std::int64_t sample = i / s.kv(), head = i % s.kv();
      T* const keys = op.cache.as<T>() + (i + sample * s.kv()) * s.capacity * s.head_dim;
      T* const values = keys + s.kv_width() * s.capacity;
      auto* const scratch = static_cast<float*>(context_.workspace.of(thread));
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        const std::int64_t row = sample * s.tokens + t, at = t - op.starts.i32()[row];
        CONCERTINA_CHECK(0 <= at && at < s.capacity, "position {} in a cache of {}", at,
                         s.capacity);
        const T *q = op.qkv.as<T>() + row * s.qkv_width(), *k = q + s.width() + head * s.head_dim;
        std::copy_n(k, s.head_dim, keys + at * s.head_dim);
        std::copy_n(k + s.kv_width(), s.head_dim, values + at * s.head_dim);
        for (std::int64_t h = head * s.group(); h < (head + 1) * s.group(); ++h)
          attend_(q + h * s.head_dim, keys, values, at + 1, s.head_dim, scratch,
                  op.y.as<T>() + row * s.width() + h * s.head_dim);
      }
    });
  }

 private:
  AttendRow<T> attend_;
  const Context& context_;
};

}  // namespace

std::unique_ptr<Attention> make_cached_attention(const AttentionShape& shape, Context& context) {
  const AttentionLoops& loops = *context.loops.attention_bf16;
  if (shape.compute == DType::f32)
    return std::make_unique<CachedAttention<float>>(shape, loops.attend_f32, context);
  return std::make_unique<CachedAttention<Bf16>>(shape, loops.attend_bf16, context);
}

}  // namespace concertina::cpu
