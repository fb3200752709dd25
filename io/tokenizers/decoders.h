#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// The steps of a tokenizer.json's "decoder"; without one, tokens have spaces between. Input
/// errors, with `where`: one that is not supported, or a rule of one.
std::vector<Decoder> read_decoders(const nlohmann::json& decoder, const std::string& where);

}  // namespace concertina
