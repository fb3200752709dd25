// The tokens that a model expects around one text, or around two.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Returns the marks of the "post_processor" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
std::optional<Marks> read_marks(const nlohmann::json& post_processor, const std::string& where);

}  // namespace concertina
