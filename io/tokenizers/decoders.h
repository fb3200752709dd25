#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// The steps of a tokenizer.json's "decoder"; without one, tokens have spaces between. Input
/// errors, with `where`: one that is not supported, or a rule of one.
std::vector<Decoder> read_decoders(const nlohmann::json& decoder, const std::string& where);

/// Names in GPT-2's alphabet, as bytes.
Decoder byte_decoder();
/// Words with spaces between, and with `cleans` none before the marks that end one.
Decoder word_piece_decoder(std::string prefix, bool cleans);

}  // namespace concertina
