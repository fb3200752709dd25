// MLP half-block with its skip (GPT-2, pre-norm):
//   h = LN(x); g = gelu(h Wup + b); output = x + dropout(g Wdown + b).
// Parameters: ln.weight [C], ln.bias [C], up.weight [C,4C], up.bias [4C], down.weight [4C,C],
// down.bias [C]; matrices are stored [in,out].
#pragma once

#include "models/unit.h"

namespace concertina {

/// `std` of the weights' init; `residual_std` of the projection into the skip.
UnitSpec mlp_spec(std::string name, const UnitShape& shape, float std, float residual_std);
std::unique_ptr<Unit> make_mlp(const UnitShape& shape, Backend& backend);

}  // namespace concertina
