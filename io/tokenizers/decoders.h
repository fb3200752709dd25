#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// Returns the steps of the "decoder" of a tokenizer.json; without one, tokens are separated by
/// spaces. Throws Error{bad_input} with `where` for an unsupported step or rule.
std::vector<Decoder> read_decoders(const nlohmann::json& decoder, const std::string& where);

}  // namespace concertina
