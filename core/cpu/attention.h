// Causal attention on the CPU: a head a piece, tiles of queries, products by oneDNN.
#pragma once

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

/// `context` outlives the result.
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, Context& context);

}  // namespace concertina::cpu
