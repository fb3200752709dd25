// Where libsentencepiece is used, or is not.
#pragma once

#include <memory>
#include <string>

#include "io/tokenizers/special_tokens.h"

namespace concertina {

/// Whether the library was there when this program was built, and is.
bool has_sentencepiece();
/// `said`: special tokens other than the model's own. Input errors: no model; no library.
std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const SaidTokens& said);

}  // namespace concertina
