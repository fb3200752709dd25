// The tokens of a text that a tokenizer with a vocabulary makes, in memory: 4 bytes per token.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "io/corpus.h"
#include "io/datasets/windows.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Encodes the corpus part by part, each part for itself, on all cores of this process. `sizes`:
/// of the parts, one after the other; bytes, then tokens. Input error: a part that is not UTF-8,
/// with the file and the byte.
std::unique_ptr<const TokenSequence> encoded_text(const Corpus& corpus, const Tokenizer& tokenizer,
                                                  std::array<std::uint64_t, 3>& sizes);

}  // namespace concertina
