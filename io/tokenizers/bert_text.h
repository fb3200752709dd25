// A text as BERT's tokenizer sees it: cleaned, and in small letters where it wants that (Devlin et
// al., 2019; BertNormalizer of `tokenizers`).
#pragma once

#include <string>
#include <string_view>

namespace concertina {

struct BertText {
  bool clean = true;          // control characters go; white space becomes a space
  bool chinese = true;        // an ideograph is a word
  bool strip_accents = true;  // decomposed, without marks
  bool lowercase = true;

  /// `text` is UTF-8.
  std::string normalize(std::string_view text) const;
};

}  // namespace concertina
