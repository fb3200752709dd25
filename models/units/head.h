// Final norm, tied head and loss: h = LN(x); logits = h wte^T; row_loss = cross entropy.
// Parameters: ln.weight [C], ln.bias [C], wte [V,C] (shared by the name "wte").
// A training forward leaves the gradient of the loss where the logits were.
#pragma once

#include "models/unit.h"

namespace concertina {

UnitSpec head_spec(std::string name, const UnitShape& shape, std::int64_t vocabulary, float std);
std::unique_ptr<Unit> make_head(const UnitShape& shape, std::int64_t vocabulary, Backend& backend);

}  // namespace concertina
