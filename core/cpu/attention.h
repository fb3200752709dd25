// Causal attention on the CPU, a head a piece. In bf16 its products are oneDNN's, since only a
// library knows each processor's instructions for them. In fp32 they are loops of our own over
// packed panels: a seventh faster than oneDNN's, which copy their operands in every call.
#pragma once

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

/// `context` outlives the result.
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);
std::unique_ptr<Attention> make_product_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cpu
