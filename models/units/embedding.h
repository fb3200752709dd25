// Token and position embedding: output[R,C] = dropout(wte[token] + wpe[position]).
// Parameters: wte [V,C] (shared by the name "wte"), wpe [T,C].
#pragma once

#include "models/unit.h"

namespace concertina {

/// The shared token table [V,C] as one unit's parameter.
ParameterSpec token_table(std::int64_t vocabulary, std::int64_t width, float std);

UnitSpec embedding_spec(std::string name, const UnitShape& shape, std::int64_t vocabulary,
                        float std);
std::unique_ptr<Unit> make_embedding(const UnitShape& shape, Backend& backend);

}  // namespace concertina
