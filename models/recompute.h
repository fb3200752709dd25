// Which units keep nothing from F to B but their input, and compute the rest again in B.
// Invariant: what is computed again has the same bits, so a choice changes memory and time alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// Sets UnitSpec::recompute by the words of parallel.recompute: a kind of unit ("attention" is what
/// is called selective elsewhere, "mlp"), "full" for every half-block, or units by number, "3" or
/// "4-7". None: no unit. Throws Error{bad_input} for a word that names no unit, or one that keeps
/// nothing that could be computed again.
void choose_recompute(ModelSpec& model, std::span<const std::string> words);

/// The words for `model` that are no numbers: "attention", "mlp", "full"; none where no unit can.
std::vector<std::string> recompute_words(const ModelSpec& model);

}  // namespace concertina
