// Optional use of libsentencepiece.
#pragma once

#include <memory>
#include <string>

#include "io/tokenizers/special_tokens.h"

namespace concertina {

/// Whether the library was available at build time.
bool has_sentencepiece();
/// `declared` are special tokens besides the model's. Throws if the model is missing or this build
/// does not support it.
std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const DeclaredTokens& declared);

}  // namespace concertina
