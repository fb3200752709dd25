// Attention half-block with its skip (GPT-2, pre-norm):
//   h = LN(x); qkv = h Wqkv + b; y = attention(qkv); output = x + dropout(y Wproj + b).
// Parameters: ln.weight [C], ln.bias [C], qkv.weight [C,3C], qkv.bias [3C], proj.weight [C,C],
// proj.bias [C]; matrices are stored [in,out].
#pragma once

#include "models/unit.h"

namespace concertina {

/// `std` of the weights' init; `residual_std` of the projection into the skip.
UnitSpec attention_spec(std::string name, const UnitShape& shape, std::int64_t heads, float std,
                        float residual_std);
std::unique_ptr<Unit> make_attention(const UnitShape& shape, std::int64_t heads, Backend& backend);

}  // namespace concertina
