// The stages of a tokenizer: a text is normalized and split into words, each word is encoded as
// tokens, and marks are added; decoders turn token names back into text. Each stage is a value with
// one function. Tables in normalizers.cc, pre_tokenizers.cc, word_models.cc, marks.cc and
// decoders.cc list them by their names in tokenizer.json. Source:
// github.com/huggingface/tokenizers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/special_tokens.h"
#include "io/tokenizers/tokenizer.h"

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

/// Returns the steps of the "normalizer" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
std::vector<Normalizer> read_normalizers(const nlohmann::json& normalizer,
                                         const std::string& where);

/// Returns a function that replaces matches of the step's pattern. Throws like read_normalizers().
std::function<std::string(std::string_view)> read_replacement(const nlohmann::json& step,
                                                              const std::string& where);

/// Returns the steps of the "pre_tokenizer" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
WordSteps read_pre_tokenizers(const nlohmann::json& pre_tokenizer, const std::string& where);

/// Splits before each run of '\u2581', for a model that never merges across these positions.
PreTokenizer between_blanks();

/// What is known before the model is read. The model never produces `added` tokens.
struct ModelContext {
  bool bytes = false;  // WordSteps::bytes
  const AddedTokens& added;
  const std::string& where;
};

/// Reads the "model" in a tokenizer.json, whose type is `type`. Throws Error{bad_input} with
/// context.where for an unsupported type or rule, or a damaged table.
WordModel read_word_model(const nlohmann::json& model, const std::string& type,
                          const ModelContext& context);

/// Returns the steps of the "decoder" of a tokenizer.json; without one, tokens are separated by
/// spaces. Throws Error{bad_input} with `where` for an unsupported step or rule.
std::vector<Decoder> read_decoders(const nlohmann::json& decoder, const std::string& where);

/// Returns the marks of the "post_processor" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
std::optional<Marks> read_marks(const nlohmann::json& post_processor, const std::string& where);

/// A tokenizer composed of stages.
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
