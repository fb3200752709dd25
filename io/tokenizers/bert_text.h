// Text normalization in BERT's tokenizer: cleaning, and optional lower-casing (Devlin et al., 2019;
// BertNormalizer of `tokenizers`).
#pragma once

#include <string>
#include <string_view>

namespace concertina {

struct BertText {
  bool clean = true;          // remove control characters; convert white space to spaces
  bool chinese = true;        // treat each ideograph as a word
  bool strip_accents = true;  // decompose, and remove combining marks
  bool lowercase = true;

  /// `text` must be UTF-8.
  std::string normalize(std::string_view text) const;
};

}  // namespace concertina
