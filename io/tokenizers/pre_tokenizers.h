#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/tokenizers/characters/word_pattern.h"
#include "io/tokenizers/stages.h"

namespace concertina {

/// The steps of a tokenizer.json's "pre_tokenizer", which may be null. Input errors, with `where`:
/// one that is not supported, or a rule of one.
WordSteps read_pre_tokenizers(const nlohmann::json& pre_tokenizer, const std::string& where);

/// Words of GPT-2, or of another byte-level tokenizer.
PreTokenizer byte_words(WordPattern pattern);
/// White space is left out, and punctuation marks are words.
PreTokenizer bert_words();
/// Parts that begin with '\u2581', but for several in a row: for a model that never joins these.
PreTokenizer between_blanks();

}  // namespace concertina
