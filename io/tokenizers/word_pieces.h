// WordPiece as in BERT: from the start of a word, the longest piece that is a token is split off
// repeatedly; pieces after the first have a prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace concertina {

struct WordPieceTable {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::string unknown = "[UNK]";
  std::string prefix = "##";
  std::int64_t longest_word = 100;  // in characters; longer words are unknown
};

class WordPieces {
 public:
  /// Throws Error{bad_input} with `where` if the unknown token is not in the vocabulary.
  WordPieces(const WordPieceTable& table, const std::string& where);

  /// Appends the tokens of `word`, which must be non-empty UTF-8. Thread-safe.
  void encode(std::string_view word, std::vector<std::int32_t>& tokens) const;

 private:
  std::string prefix_;
  std::int64_t longest_word_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int32_t unknown_ = 0;
};

}  // namespace concertina
