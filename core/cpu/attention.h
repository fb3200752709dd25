// Causal attention on the CPU, a head a piece. In fp32, and in bf16 by AVX512-BF16, its products
// are loops of our own over packed panels: oneDNN's copy their operands in every call and reach
// half of the processor's rate in bf16. With AMX, and where bf16 is emulated, they are oneDNN's.
#pragma once

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

/// `context` outlives the result.
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);
std::unique_ptr<Attention> make_product_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cpu
