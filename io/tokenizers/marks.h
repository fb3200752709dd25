// The tokens that a model wants around a text, or around two.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// What a tokenizer.json's "post_processor", which may be null, puts around texts; none: nothing.
/// Input errors, with `where`: one that is not supported, or a rule of one.
std::optional<Marks> read_marks(const nlohmann::json& post_processor, const std::string& where);

}  // namespace concertina
