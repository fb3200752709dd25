#include "io/tokenizers/word_pieces.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

WordPieces::WordPieces(const WordPieceTable& table, const std::string& where)
    : prefix_(table.prefix),
      longest_word_(table.longest_word),
      ids_(table.tokens.begin(), table.tokens.end()) {
  const auto unknown = ids_.find(table.unknown);
  if (unknown == ids_.end())
    throw_input(fmt::format("the vocabulary lacks '{}', the unknown token", table.unknown), where,
                "use a vocabulary with this token");
  unknown_ = unknown->second;
}

void WordPieces::encode(std::string_view word, std::vector<std::int32_t>& tokens) const {
  const auto begins_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  const std::size_t before = tokens.size();
  bool known = std::ranges::count_if(word, begins_character) <= longest_word_;
  std::string piece;
  for (std::size_t begin = 0; known && begin < word.size();) {
    std::size_t end = word.size();
    auto found = ids_.end();
    for (; end > begin; --end) {
      if (end < word.size() && !begins_character(word[end])) continue;
      piece.assign(prefix_, 0, begin == 0 ? 0 : prefix_.size()).append(word, begin, end - begin);
      found = ids_.find(piece);
      if (found != ids_.end()) break;
    }
    known = found != ids_.end();
    if (known) tokens.push_back(found->second);
    begin = end;
  }
  if (known) return;
  tokens.resize(before);
  tokens.push_back(unknown_);
}

}  // namespace concertina
