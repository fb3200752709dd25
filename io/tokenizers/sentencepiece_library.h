// Optional use of libsentencepiece.
#pragma once

#include <memory>
#include <string>

#include "io/tokenizers/special_tokens.h"

namespace concertina {

/// Whether the library was available at build time and is available now.
bool has_sentencepiece();
/// `declared` are special tokens besides the model's. Throws if the model or library is missing.
std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const DeclaredTokens& declared);

}  // namespace concertina
