#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/tokenizers/stages.h"

namespace concertina {

/// The steps of a tokenizer.json's "pre_tokenizer", which may be null. Input errors, with `where`:
/// one that is not supported, or a rule of one.
WordSteps read_pre_tokenizers(const nlohmann::json& pre_tokenizer, const std::string& where);

/// Parts that begin with '\u2581', but for several in a row: for a model that never joins these.
PreTokenizer between_blanks();

}  // namespace concertina
