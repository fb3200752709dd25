// The stages of a tokenizer: a text is normalized, cut into words, each word becomes tokens, marks
// are put around these; names of tokens become text again. Each stage is a value with one function,
// and the tables of normalizers.cc, pre_tokenizers.cc, word_models.cc, marks.cc and decoders.cc
// know them by the names that tokenizer.json has.
// Source: github.com/huggingface/tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// The places of unicode.h where a text may be cut, so that a stage makes of both parts, one after
/// the other, what it makes of the whole.
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

/// A part of a text on its way to the model.
struct Stretch {
  std::string_view text;
  bool first = false;  // it begins where the whole text does
};
using UseStretch = std::function<void(Stretch)>;

struct PreTokenizer {
  /// Calls `use` with each part of a stretch, which is not empty; no part is.
  std::function<void(Stretch stretch, const UseStretch& use)> split;
  CutPlaces cuts{};
};

struct WordSteps {
  std::vector<PreTokenizer> steps;
  bool bytes = false;  // words are bytes, which tokens name in GPT-2's alphabet
};

using TokenNames = std::vector<std::pair<std::string, std::int32_t>>;

struct WordModel {
  /// Appends the tokens of a word, which is not empty. For several threads at once.
  std::function<void(std::string_view word, std::vector<std::int32_t>& tokens)> encode;
  TokenNames names;
  /// Whether a word can be cut after any character that is no '\u2581' and before one that is.
  bool cuts_at_blanks = false;
};

/// Changes the names of some tokens, which joined are a text in the end.
using Decoder = std::function<void(std::vector<std::string>& names)>;

}  // namespace concertina
