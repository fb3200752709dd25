// Maps the elements of a published model's tensors to one of our tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "models/hugging_face.h"

namespace concertina {

/// A tensor of the published model: columns [column, column + columns) of our tensor.
struct PublishedPiece {
  std::string name;
  std::vector<std::int64_t> shape;  // of the published tensor
  std::int64_t column = 0, columns = 0;
};

class PublishedPieces {
 public:
  /// `ours`: the shape of our tensor.
  PublishedPieces(TensorMapping rule, std::vector<std::int64_t> ours);

  const TensorMapping& rule() const { return rule_; }
  const std::vector<PublishedPiece>& all() const { return pieces_; }
  std::int64_t elements() const { return rows_ * columns_; }
  /// Whether a tensor of `shape` matches `piece`, possibly with more rows at its end if allowed.
  bool fits(const PublishedPiece& piece, const std::vector<std::int64_t>& shape) const;
  /// The index of the first element of `piece` that our tensor contains, and the number of these.
  std::int64_t first(const PublishedPiece& piece) const;
  std::int64_t count(const PublishedPiece& piece) const { return rows_ * piece.columns; }

  /// Copies `theirs`, elements [first, first + count) of `piece`, into `ours` [rows, columns].
  void place(const PublishedPiece& piece, std::span<const float> theirs,
             std::span<float> ours) const;
  /// Collects all elements of `piece` from `ours`; elements that `ours` lacks are 0.
  void collect(const PublishedPiece& piece, std::span<const float> ours,
               std::vector<float>& theirs) const;

 private:
  /// Our column for column `index` of a piece with n columns.
  std::int64_t column_of(std::int64_t index, std::int64_t n) const;

  /// Whether each row of a piece is part of one of our rows.
  bool by_rows() const { return !rule_.transposed && rule_.interleaved_heads == 0; }

  TensorMapping rule_;
  std::int64_t rows_, columns_;  // of our tensor
  std::vector<PublishedPiece> pieces_;
};

}  // namespace concertina
