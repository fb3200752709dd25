// Tokens that stand in a text as they are, such as <|endoftext|>: they are found before anything
// else is done to it, or where they are normalized before it is cut into words.
// Source: github.com/huggingface/tokenizers, added_vocabulary.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Ids of a model's tokens by name.
struct KnownTokens {
  std::unordered_map<std::string, std::int32_t> ids;
  std::int64_t count = 0;  // of its tokens; a name may be there twice
};

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool normalized = false;                         // it is found in a text that is normalized
  bool takes_before = false, takes_after = false;  // white space there is a part of it
};

class AddedTokens {
 public:
  using Normalize = std::function<std::string(std::string_view text)>;

  AddedTokens() = default;
  /// `list`: tokenizer.json's added_tokens; `known`: those of its model. Input errors, with
  /// `where`: what is no such list; an id that is not the one that `tokenizers` gives; a token that
  /// must be a word of its own, which is not supported; one that normalization leaves nothing of.
  AddedTokens(const nlohmann::json& list, const KnownTokens& known, const Normalize& normalize,
              const std::string& where);

  void add(const AddedToken& token, const Normalize& normalize = {});

  /// Calls `plain` with each stretch of `text` between added tokens and whether it is the text's
  /// beginning, and `found` with the id of each of those, from left to right: the leftmost first,
  /// of those the longest. `normalized`: those that are found in a text that is normalized.
  template <class Plain, class Found>
  void split(std::string_view text, bool normalized, const Plain& plain, const Found& found) const {
    const Group& group = normalized ? normalized_ : raw_;
    for (std::size_t begin = 0; begin < text.size();) {
      const Match match = next(group, text, begin);
      if (match.begin > begin) plain(text.substr(begin, match.begin - begin), begin == 0);
      if (match.end > match.begin) found(match.id);
      begin = match.end;
    }
  }
  /// The text of an id; null if it is none of these.
  const std::string* content(std::int32_t id) const;
  /// By the names that are usual for it: "[CLS]" or "<s>", ...
  std::optional<std::int32_t> special(SpecialToken which) const;
  const std::unordered_map<std::string, std::int32_t>& all() const { return ids_; }
  /// Whether one of them has this character, or takes white space and is normalized: then a text is
  /// not cut at such characters.
  bool hinders_cuts(char character) const;
  /// Whether none takes white space across `at`.
  bool may_be_cut(std::string_view text, std::size_t at) const;

 private:
  struct Match {
    std::size_t begin = 0, end = 0;  // equal: none, and they are the end of the text
    std::int32_t id = 0;
  };
  struct Pattern {
    std::string text;
    AddedToken token;
  };
  /// Those that are looked for at a time.
  struct Group {
    // By first byte: longest first.
    std::vector<Pattern> by_first[256];
    std::string firsts;  // the bytes that one begins with
  };
  static Match next(const Group& group, std::string_view text, std::size_t begin);

  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string> contents_;
  std::vector<AddedToken> takers_;  // of white space
  Group raw_, normalized_;
};

}  // namespace concertina
