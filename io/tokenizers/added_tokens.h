// Tokens that are matched literally in a text, such as <|endoftext|>: before any other processing
// or, if they are normalized, before the text is split into words. Source:
// github.com/huggingface/tokenizers, added_vocabulary.rs.
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
  std::int64_t count = 0;  // number of tokens; names may be duplicated
};

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool normalized = false;                         // whether it is matched in normalized text
  bool takes_before = false, takes_after = false;  // whether it includes adjacent white space
};

class AddedTokens {
 public:
  using Normalize = std::function<std::string(std::string_view text)>;

  AddedTokens() = default;
  /// `list` is the added_tokens of tokenizer.json; `known` lists its model's tokens. Throws
  /// Error{bad_input} with `where` if the list is invalid, an id is not the one that `tokenizers`
  /// assigns, a token has single_word (not supported), or normalization leaves a token empty.
  AddedTokens(const nlohmann::json& list, const KnownTokens& known, const Normalize& normalize,
              const std::string& where);

  void add(const AddedToken& token, const Normalize& normalize = {});

  /// Calls `plain` with each part of `text` between added tokens and whether it is at the
  /// beginning, and `found` with the id of each added token, from left to right; the leftmost match
  /// wins, then the longest. `normalized` selects the tokens that are matched in normalized text.
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
  /// Returns the text of the added token with this id; null if there is none.
  const std::string* content(std::int32_t id) const;
  /// Returns the token with a common name for this role: "[CLS]" or "<s>", ...
  std::optional<std::int32_t> special(SpecialToken which) const;
  const std::unordered_map<std::string, std::int32_t>& all() const { return ids_; }
  /// Whether a token contains this character, or is normalized and includes white space: a text
  /// must then not be split at such characters.
  bool hinders_cuts(char character) const;
  /// Whether no token includes white space across `at`.
  bool may_be_cut(std::string_view text, std::size_t at) const;

 private:
  struct Match {
    std::size_t begin = 0, end = 0;  // if equal, there is no match before this position
    std::int32_t id = 0;
  };
  struct Pattern {
    std::string text;
    AddedToken token;
  };
  /// Tokens that are searched for in one pass.
  struct Group {
    // By first byte, longest first.
    std::vector<Pattern> by_first[256];
    std::string firsts;  // all first bytes
  };
  static Match next(const Group& group, std::string_view text, std::size_t begin);

  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string> contents_;
  std::vector<AddedToken> takers_;  // tokens that include white space
  Group raw_, normalized_;
};

}  // namespace concertina
