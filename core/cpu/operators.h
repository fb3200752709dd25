// The operators of the CPU backend.
//
// Linear maps are single-threaded products over fixed tiles, computed by oneDNN or this project's
// loops. Epilogues are applied while a tile is in cache.
//
// Attention processes one key head at a time, with the query heads that share it. In fp32, and in
// bf16 with AVX512-BF16, its products are loops over packed panels, because oneDNN copies operands
// in every call and reaches only half of the processor's bf16 rate. With AMX, and where bf16 is
// emulated, the products are oneDNN's.
#pragma once

#include <algorithm>
#include <optional>

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

// `context` must outlive the results.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);
std::unique_ptr<Attention> make_product_attention(const AttentionShape& shape, Context& context);
std::unique_ptr<Attention> make_cached_attention(const AttentionShape& shape, Context& context);

/// Returns the mask of a sample's query heads from `head` on, or nullopt if there is no dropout.
std::optional<ScoreDropout> score_dropout(const AttentionShape& shape, const DropoutMask& mask,
                                          std::int64_t sample, std::int64_t head);

/// Offsets of one key head in the operands, and of the first query head that shares it.
struct HeadOffsets {
  Int sample, head, q, k, v, y, lse;  // `head` is a query head
};

/// Calls f(offsets, thread) for each key head of each sample.
template <class F>
void each_head(const AttentionShape& s, const Team& team, F&& f) {
  team.each(s.samples * s.kv(), [&](Int i, int thread) {
    const Int sample = i / s.kv(), row = sample * s.tokens, first = i % s.kv() * s.group();
    const Int k = row * s.qkv_width() + s.width() + i % s.kv() * s.head_dim;
    f(HeadOffsets{sample, first, row * s.qkv_width() + first * s.head_dim, k, k + s.kv_width(),
                  row * s.width() + first * s.head_dim, (sample * s.heads + first) * s.tokens},
      thread);
  });
}

/// Returns the number of keys of a sample that are not padding.
inline std::int64_t length_of(const AttentionShape& shape, View lengths, std::int64_t sample) {
  return lengths.empty() ? shape.tokens
                         : std::clamp<std::int64_t>(lengths.i32()[sample], 1, shape.tokens);
}

}  // namespace concertina::cpu
