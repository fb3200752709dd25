// The most likely segmentation of a word into pieces with log-probabilities (Kudo, 2018).
// Invariant: sums, their order and tie-breaking are exactly as in `tokenizers`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

struct UnigramTable {
  std::vector<std::pair<std::string, double>> pieces;  // by id
  std::optional<std::int32_t> unknown;
  bool byte_fallback = false;  // encode unknown text as tokens <0x00> ... of its bytes
};

class UnigramPieces {
 public:
  explicit UnigramPieces(const UnigramTable& table);

  /// Appends the tokens of `word`, which must be UTF-8. Thread-safe. Throws Error{bad_input} if a
  /// character is not a piece and there is no unknown piece.
  void encode(std::string_view word, std::vector<std::int32_t>& tokens) const;

 private:
  /// A prefix of pieces. Its extensions by one byte are adjacent nodes, sorted by that byte.
  struct Node {
    std::uint8_t byte = 0;
    std::int32_t piece = -1;  // the piece equal to this prefix; -1: none
    std::int32_t first = 0, count = 0;
  };
  struct Best {
    double score = 0;
    std::int32_t begin = -1, piece = 0;
  };
  void grow(std::int32_t node, std::span<const std::int32_t> pieces, std::size_t depth,
            const UnigramTable& table);
  const Node* extended(const Node& node, char byte) const;
  void find_best(std::string_view word, std::vector<Best>& best) const;
  void append(std::string_view piece, std::int32_t id, std::vector<std::int32_t>& tokens) const;

  std::vector<Node> nodes_{1};
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<std::int32_t> unknown_;
  std::array<std::int32_t, 256> fallback_{};  // -1: none
  bool byte_fallback_;
};

}  // namespace concertina
