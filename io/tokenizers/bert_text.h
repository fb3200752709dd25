// A text as BERT's tokenizer sees it: cleaned, in small letters where it wants that, as words and
// punctuation marks (Devlin et al., 2019; BertNormalizer and BertPreTokenizer of `tokenizers`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace concertina {

struct BertText {
  bool clean = true;          // control characters go; white space becomes a space
  bool chinese = true;        // an ideograph is a word
  bool strip_accents = true;  // decomposed, without marks
  bool lowercase = true;

  /// `text` is UTF-8.
  std::string normalize(std::string_view text) const;
  /// The words of a normalized text, which they point into.
  static std::vector<std::string_view> words(std::string_view normalized);
};

}  // namespace concertina
