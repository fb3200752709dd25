// One tensor of ours as the tensors of a published model that make it up: which of their elements
// are which of ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/hugging_face.h"

namespace concertina {

/// One of theirs: columns [column, column + columns) of ours.
struct PublishedPiece {
  std::string name;
  std::vector<std::int64_t> shape;  // of theirs
  std::int64_t column = 0, columns = 0;
};

class PublishedPieces {
 public:
  /// `ours`: the shape of our tensor.
  PublishedPieces(StoredElsewhere rule, std::vector<std::int64_t> ours);

  const StoredElsewhere& rule() const { return rule_; }
  const std::vector<PublishedPiece>& all() const { return pieces_; }
  std::int64_t elements() const { return rows_ * columns_; }
  /// Whether a tensor of `shape` is `piece`, or, where the rule has it, has more rows at its end.
  bool fits(const PublishedPiece& piece, const std::vector<std::int64_t>& shape) const;
  /// The first element of theirs that is one of ours, and how many there are.
  std::int64_t first(const PublishedPiece& piece) const;
  std::int64_t count(const PublishedPiece& piece) const { return rows_ * piece.columns; }

  /// Puts `theirs`, elements [first, first + count) of `piece`, where they are in ours [rows,
  /// columns].
  void place(const PublishedPiece& piece, std::span<const float> theirs,
             std::span<float> ours) const;
  /// All elements of `piece` from ours; those that are none of ours are 0.
  void collect(const PublishedPiece& piece, std::span<const float> ours,
               std::vector<float>& theirs) const;

 private:
  /// The column of ours that is column `index` of a piece, of n.
  std::int64_t column_of(std::int64_t index, std::int64_t n) const;

  /// Whether rows of theirs are pieces of rows of ours.
  bool by_rows() const { return !rule_.transposed && rule_.interleaved_heads == 0; }

  StoredElsewhere rule_;
  std::int64_t rows_, columns_;  // of ours
  std::vector<PublishedPiece> pieces_;
};

/// The number of elements of a shape.
std::int64_t elements_of(std::span<const std::int64_t> shape);

}  // namespace concertina
