#include "experiments/hugging_face/published_pieces.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

PublishedPieces::PublishedPieces(TensorMapping rule, std::vector<std::int64_t> ours)
    : rule_(std::move(rule)), rows_(elements_of(ours) / ours.back()), columns_(ours.back()) {
  const std::size_t pieces = rule_.theirs.size();
  std::int64_t column = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::int64_t columns =
        rule_.columns.empty() ? columns_ / static_cast<std::int64_t>(pieces) : rule_.columns[i];
    std::vector<std::int64_t> shape = rule_.shape;
    if (shape.empty() && rule_.transposed) shape = {columns, rows_};
    if (shape.empty()) {
      shape = ours;
      shape.back() = columns;
      shape.front() += rule_.skipped_rows;
    }
    pieces_.push_back({rule_.theirs[i], std::move(shape), column, columns});
    column += columns;
  }
  CONCERTINA_CHECK(column == columns_, "{}: {} of {} columns", rule_.ours, column, columns_);
}

bool PublishedPieces::fits(const PublishedPiece& piece,
                           const std::vector<std::int64_t>& shape) const {
  if (shape == piece.shape) return true;
  return rule_.first_rows && shape.size() == piece.shape.size() &&
         shape.back() == piece.shape.back() && elements_of(shape) >= elements_of(piece.shape);
}

std::int64_t PublishedPieces::first(const PublishedPiece& piece) const {
  return rule_.skipped_rows * piece.columns;
}

std::int64_t PublishedPieces::column_of(std::int64_t index, std::int64_t n) const {
  if (rule_.interleaved_heads == 0) return index;
  const std::int64_t d = n / (3 * rule_.interleaved_heads);
  const std::int64_t head = index / (3 * d), which = index / d % 3;
  return which * rule_.interleaved_heads * d + head * d + index % d;
}

void PublishedPieces::place(const PublishedPiece& piece, std::span<const float> theirs,
                            std::span<float> ours) const {
  if (by_rows()) {
    for (std::int64_t r = 0; r < rows_; ++r)
      std::copy_n(theirs.begin() + r * piece.columns, piece.columns,
                  ours.begin() + r * columns_ + piece.column);
    return;
  }
  for (std::int64_t c = 0; c < piece.columns; ++c) {
    const std::int64_t column = piece.column + column_of(c, piece.columns);
    for (std::int64_t r = 0; r < rows_; ++r)
      ours[static_cast<std::size_t>(r * columns_ + column)] = theirs[static_cast<std::size_t>(
          rule_.transposed ? c * rows_ + r : r * piece.columns + c)];
  }
}

void PublishedPieces::collect(const PublishedPiece& piece, std::span<const float> ours,
                              std::vector<float>& theirs) const {
  const std::int64_t start = first(piece);
  theirs.assign(static_cast<std::size_t>(start + count(piece)), 0.0F);
  if (by_rows()) {
    for (std::int64_t r = 0; r < rows_; ++r)
      std::copy_n(ours.begin() + r * columns_ + piece.column, piece.columns,
                  theirs.begin() + start + r * piece.columns);
    return;
  }
  for (std::int64_t c = 0; c < piece.columns; ++c) {
    const std::int64_t column = piece.column + column_of(c, piece.columns);
    for (std::int64_t r = 0; r < rows_; ++r)
      theirs[static_cast<std::size_t>(start +
                                      (rule_.transposed ? c * rows_ + r : r * piece.columns + c))] =
          ours[static_cast<std::size_t>(r * columns_ + column)];
  }
}

}  // namespace concertina
