// What both kinds of products of linear maps share: their weights and how they are cut.
#pragma once

#include <algorithm>
#include <cstdint>

namespace concertina::cpu {

/// B[k,n] of fp32 weights, with its strides in elements.
struct Weights {
  std::int64_t k, n, row, column;
};

// Rows of a tile: enough to reuse the weights from L3 (32 FLOP a byte), few enough that a tile of
// 4C columns stays in L2 for its epilogue. Part of the numerics: changing it may change bits.
inline constexpr std::int64_t kTileRows = 64;
// About how many rows of x and dy one pass of a weight gradient reads: the pieces of the pass share
// them in L3. Part of the numerics.
inline constexpr std::int64_t kDepth = 1024;

/// `all` cut evenly into pieces of about `piece`, the last one at most shorter: 1028 rows are no
/// pass of 1024 and one of 4.
inline std::int64_t even_piece(std::int64_t all, std::int64_t piece) {
  const std::int64_t pieces = std::max<std::int64_t>(1, (all + piece / 2) / piece);
  return (all + pieces - 1) / pieces;
}

/// [0, all) cut into pieces of `piece`; what is left over is the last one.
struct Cuts {
  std::int64_t all, piece;
  std::int64_t count() const { return (all + piece - 1) / piece; }
  bool last(std::int64_t i) const { return (i + 1) * piece > all; }
  /// The length of a whole piece, or of the one left over; 0 where there is none.
  std::int64_t length(bool last) const { return last ? all % piece : all < piece ? 0 : piece; }
};

}  // namespace concertina::cpu
