// Which units keep only their input between F and B, and recompute the rest in B.
// Invariant: recomputed values are bit-identical, so the choice affects only memory and time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// Sets UnitSpec::recompute according to the values of parallel.recompute: a kind of unit ("mlp",
/// or "attention", known elsewhere as selective recomputation), "full" for every half-block, or
/// unit numbers, "3" or "4-7". With no `words`, no unit is recomputed. Throws Error{bad_input} for
/// a value that matches no unit, or a unit that saves nothing that could be recomputed.
void choose_recompute(ModelSpec& model, std::span<const std::string> words);

/// Returns the non-numeric values for `model`: "attention", "mlp", "full"; empty if there are none.
std::vector<std::string> recompute_words(const ModelSpec& model);

}  // namespace concertina
