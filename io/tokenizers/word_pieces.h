// WordPiece, as of BERT: a word is cut into the longest piece that is a token, from its beginning
// on; pieces after the first have a prefix.
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
  std::int64_t longest_word = 100;  // characters; a longer one is unknown
};

class WordPieces {
 public:
  /// Input error, with `where`: the unknown token is none.
  WordPieces(const WordPieceTable& table, const std::string& where);

  /// Appends the tokens of `word`, which is UTF-8 and not empty. For several threads at once.
  void encode(std::string_view word, std::vector<std::int32_t>& tokens) const;

 private:
  std::string prefix_;
  std::int64_t longest_word_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int32_t unknown_ = 0;
};

}  // namespace concertina
