// The operators of the CPU backend.
//
// Linear maps: single-threaded products over fixed tiles, by oneDNN or by our own loops, with what
// follows a product done on the tile while it is in cache.
//
// Attention: a head of keys a piece, with the heads of queries that share it. In fp32, and in bf16
// by AVX512-BF16, its products are loops of our own over packed panels: oneDNN's copy their
// operands in every call and reach half of the processor's rate in bf16. With AMX, and where bf16
// is emulated, they are oneDNN's.
#pragma once

#include <algorithm>
#include <optional>

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

// `context` outlives what these make.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);
std::unique_ptr<Attention> make_product_attention(const AttentionShape& shape, Context& context);

/// The mask of a sample's query heads from `head` on; none where its share is 0.
std::optional<ScoreDropout> score_dropout(const AttentionShape& shape, const DropoutMask& mask,
                                          std::int64_t sample, std::int64_t head);

/// The number of keys of a sample that queries may see.
inline std::int64_t length_of(const AttentionShape& shape, View lengths, std::int64_t sample) {
  return lengths.empty() ? shape.tokens
                         : std::clamp<std::int64_t>(lengths.i32()[sample], 1, shape.tokens);
}

}  // namespace concertina::cpu
