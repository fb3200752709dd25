// Tokens that stand in a text as they are, such as <|endoftext|>: they are found before anything
// else is done to it. Source: github.com/huggingface/tokenizers, added_vocabulary.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

class AddedTokens {
 public:
  AddedTokens() = default;
  /// `list`: tokenizer.json's added_tokens; `vocab`: its model's. Input errors, with `where`: what
  /// is no such list; an id that is not the one that `tokenizers` gives; a token that takes spaces
  /// with it or must be a word of its own, which is not supported.
  AddedTokens(const nlohmann::json& list, const nlohmann::json& vocab, const std::string& where);

  /// `normalized`: where a text is normalized, the token is found in what that leaves.
  void add(std::string content, std::int32_t id, bool normalized = false);

  /// Calls `plain` with each stretch of text between added tokens, and `found` with the id of
  /// each of those, from left to right: the leftmost first, of those the longest. Normalized ones
  /// are found between the others. The text is one that needs no normalization.
  template <class Plain, class Found>
  void split(std::string_view text, const Plain& plain, const Found& found) const {
    split_by(
        raw_, text, [&](std::string_view part) { split_by(normalized_, part, plain, found); },
        found);
  }
  /// One that is normalized; null without any.
  const std::string* any_normalized() const;
  /// The text of an id; null if it is none of these.
  const std::string* content(std::int32_t id) const;
  /// By the names that are usual for it: "[CLS]" or "<s>", ...
  std::optional<std::int32_t> special(SpecialToken which) const;
  const std::unordered_map<std::string, std::int32_t>& all() const { return ids_; }
  /// Whether one of them has this character.
  bool any_has(char character) const;

 private:
  struct Match {
    std::size_t begin = 0, size = 0;  // size 0: none, and begin is the end of the text
    std::int32_t id = 0;
  };
  /// Those that are looked for at a time.
  struct Group {
    // By first byte: contents, longest first.
    std::vector<std::string> by_first[256];
    std::string firsts;  // the bytes that one begins with
  };
  Match next(const Group& group, std::string_view text, std::size_t begin) const;
  template <class Plain, class Found>
  void split_by(const Group& group, std::string_view text, const Plain& plain,
                const Found& found) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const Match match = next(group, text, begin);
      if (match.begin > begin) plain(text.substr(begin, match.begin - begin));
      if (match.size > 0) found(match.id);
      begin = match.begin + match.size;
    }
  }

  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, std::string> contents_;
  Group raw_, normalized_;
};

}  // namespace concertina
