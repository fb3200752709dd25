// A tokenizer composed of stages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/special_tokens.h"
#include "io/tokenizers/stages.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

struct TokenizerStages {
  AddedTokens added;
  std::vector<Normalizer> normalizers;
  WordSteps words;
  WordModel model;
  std::optional<Marks> marks;
  std::vector<Decoder> decoders;
  DeclaredTokens declared;
  std::string fingerprint;
};

std::string normalized_by(const std::vector<Normalizer>& normalizers, std::string_view text);

std::unique_ptr<Tokenizer> make_pipeline(TokenizerStages stages);

}  // namespace concertina
