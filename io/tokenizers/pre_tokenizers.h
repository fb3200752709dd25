#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/tokenizers/stages.h"

namespace concertina {

/// Returns the steps of the "pre_tokenizer" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
WordSteps read_pre_tokenizers(const nlohmann::json& pre_tokenizer, const std::string& where);

/// Splits before each run of '\u2581', for a model that never merges across these positions.
PreTokenizer between_blanks();

}  // namespace concertina
