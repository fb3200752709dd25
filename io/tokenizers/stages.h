// The stages of a tokenizer: a text is normalized and split into words, each word is encoded as
// tokens, and marks are added; decoders turn token names back into text. Each stage is a value with
// one function. Tables in normalizers.cc, pre_tokenizers.cc, word_models.cc, marks.cc and
// decoders.cc list them by their names in tokenizer.json. Source:
// github.com/huggingface/tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// The positions (see unicode.h) where a text may be split without changing the result of a stage:
/// processing both parts separately is equivalent.
struct CutPlaces {
  bool lines = true, spaces = true;
  friend CutPlaces operator&(CutPlaces a, CutPlaces b) {
    return {a.lines && b.lines, a.spaces && b.spaces};
  }
};

struct Normalizer {
  std::function<std::string(std::string_view text)> apply;
  CutPlaces cuts{};
};

/// A part of a text before it reaches the model.
struct Stretch {
  std::string_view text;
  bool first = false;  // whether it begins at the start of the text
};
using UseStretch = std::function<void(Stretch)>;

struct PreTokenizer {
  /// Calls `use` with each part of a non-empty stretch; parts are not empty.
  std::function<void(Stretch stretch, const UseStretch& use)> split;
  CutPlaces cuts{};
};

struct WordSteps {
  std::vector<PreTokenizer> steps;
  bool bytes = false;  // whether words are bytes, which tokens spell in GPT-2's alphabet
};

using TokenNames = std::vector<std::pair<std::string, std::int32_t>>;

struct WordModel {
  /// Appends the tokens of a non-empty word. Thread-safe.
  std::function<void(std::string_view word, std::vector<std::int32_t>& tokens)> encode;
  TokenNames names;
  /// Whether a word can be split before each '\u2581' that follows a different character.
  bool cuts_at_blanks = false;
};

/// Transforms token names, which are concatenated at the end.
using Decoder = std::function<void(std::vector<std::string>& names)>;

}  // namespace concertina
