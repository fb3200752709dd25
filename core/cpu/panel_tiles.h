// Products of linear maps by our own loops over packed panels (panel_products.cc), in tiles that do
// not depend on the number of threads. fp32 alone.
#pragma once

#include <algorithm>

#include "core/cpu/linear_cuts.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

static_assert(kTileRows <= kPanelProductRows);

/// y[R,n] = x[R,k] B.
template <class T>
class PanelRows {
 public:
  PanelRows(std::int64_t rows, const Weights& weights, Context& context)
      : context_(context), rows_(rows), weights_(weights) {}

  std::size_t packed_bytes() const {
    return static_cast<std::size_t>(loops().packed(weights_.k, weights_.n)) * sizeof(float);
  }
  void pack(const float* weights, void* to) const {
    loops().pack(weights, weights_.row, weights_.column, weights_.k, weights_.n,
                 static_cast<float*>(to));
  }

  /// `after(first_row, rows, tile)` runs on each tile [rows,n] of y after its product.
  template <class After>
  void run(const T* x, const void* b, T* y, After&& after) const {
    context_.team.runs(rows_, kTileRows, [&](std::int64_t first, std::int64_t end) {
      T* tile = y + first * weights_.n;
      loops().rows(x + first * weights_.k, static_cast<const float*>(b), end - first, weights_.k,
                   weights_.n, tile);
      after(first, end - first, tile);
    });
  }

 private:
  const PanelProducts& loops() const { return *context_.panel_products; }

  const Context& context_;
  std::int64_t rows_;
  Weights weights_;
};

/// dw[m,n] (+)= left[R,m]^T right[R,n]: pieces of dw, depth in passes of about kDepth. A piece is
/// as large as the threads leave it, because its rows and columns are packed for it alone; elements
/// of dw do not depend on its size.
template <class T>
class PanelOuter {
 public:
  PanelOuter(std::int64_t rows, std::int64_t m, std::int64_t n, Context& context)
      : context_(context), depth_{rows, even_piece(rows, kDepth)}, row_{m, m}, column_{n, n} {
    cut(context.team.threads());
    const std::int64_t scratch = loops().outer_scratch(depth_.piece, row_.piece, column_.piece);
    context.workspace.need(static_cast<std::size_t>(scratch) * sizeof(float));
  }

  void run(const T* left, const T* right, float* dw, bool accumulate) const {
    const std::int64_t m = row_.all, n = column_.all;
    for (std::int64_t p = 0; p < depth_.all; p += depth_.piece, accumulate = true)
      context_.team.each(row_.count() * column_.count(), [&](std::int64_t i, int thread) {
        const std::int64_t row = i / column_.count() * row_.piece,
                           column = i % column_.count() * column_.piece;
        loops().outer(left + p * m + row, m, right + p * n + column, n,
                      std::min(depth_.piece, depth_.all - p), std::min(row_.piece, m - row),
                      std::min(column_.piece, n - column), dw + row * n + column, n, accumulate,
                      static_cast<float*>(context_.workspace.of(thread)));
      });
  }

 private:
  // Columns whose panels stay in L3, and the side of a piece that is not worth cutting.
  static constexpr std::int64_t kMostColumns = 2048, kLeast = 96;

  /// Into two pieces per thread, so that one that lost its core can be helped; none has to be
  /// helped alone.
  void cut(int threads) {
    const std::int64_t wanted = threads == 1 ? 1 : 2 * static_cast<std::int64_t>(threads);
    std::int64_t rows = 1, columns = (column_.all + kMostColumns - 1) / kMostColumns;
    const auto resize = [](Cuts& side, std::int64_t pieces) {
      side.piece = (side.all + pieces - 1) / pieces;
    };
    resize(column_, columns);
    while (rows * columns < wanted && std::max(row_.piece, column_.piece) > kLeast)
      row_.piece > column_.piece ? resize(row_, ++rows) : resize(column_, ++columns);
  }

  const PanelProducts& loops() const { return *context_.panel_products; }

  const Context& context_;
  Cuts depth_, row_, column_;
};

}  // namespace concertina::cpu
