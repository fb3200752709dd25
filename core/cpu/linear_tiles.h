// The products of linear maps, in tiles that do not depend on the number of threads, computed by
// oneDNN (RowTiles, OuterTiles), or in fp32 by this project's loops over packed panels (PanelRows,
// PanelOuter; panel_products.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "core/cpu/product.h"

namespace concertina::cpu {

/// fp32 weights B[k,n] and their strides in elements.
struct Weights {
  std::int64_t k, n, row, column;
};

// Rows per tile: enough to reuse the weights from L3 (32 FLOP per byte), and few enough for a tile
// of 4C columns to stay in L2 for its epilogue. Part of the numerics: changing it may change bits.
inline constexpr std::int64_t kTileRows = 64;
// Approximate number of rows of x and dy read by one pass of a weight gradient; the pieces of the
// pass share them in L3. Part of the numerics.
inline constexpr std::int64_t kDepth = 1024;

/// Returns the length that divides `all` evenly into pieces of about `piece`; only the last may be
/// shorter. This avoids a remainder such as 4 of 1028 rows.
inline std::int64_t even_piece(std::int64_t all, std::int64_t piece) {
  const std::int64_t pieces = std::max<std::int64_t>(1, (all + piece / 2) / piece);
  return (all + pieces - 1) / pieces;
}

/// The partition of [0, all) into pieces of `piece`; the last piece is the remainder.
struct Cuts {
  std::int64_t all, piece;
  std::int64_t count() const { return (all + piece - 1) / piece; }
  bool last(std::int64_t i) const { return (i + 1) * piece > all; }
  /// Returns the length of a full piece, or of the remainder; 0 if there is none.
  std::int64_t length(bool last) const { return last ? all % piece : all < piece ? 0 : piece; }
};

/// y[R,n] = x[R,k] B: one product for whole tiles, and another with the same packing for the last
/// rows. The fp32 result of a tile is stored in y, or in scratch if y is narrower.
template <class T>
class RowTiles {
 public:
  RowTiles(std::int64_t rows, const Weights& w, Context& context)
      : context_(context), rows_(rows), k_(w.k), n_(w.n), tile_(std::min(rows, kTileRows)) {
    ProductShape shape{.type = kTypeOf<T>, .m = tile_, .k = k_, .n = n_};
    shape.a_row = k_, shape.a_column = 1, shape.c_row = n_;
    main_.emplace(shape, context);
    shape.m = rows % tile_;
    if (shape.m != 0) tail_.emplace(shape, context, &main_->b_desc());
    if (!kInPlace) context.workspace.need(static_cast<std::size_t>(tile_ * n_) * sizeof(float));
    const dnnl::memory::desc from({k_, n_}, dnnl::memory::data_type::f32,
                                  dnnl::memory::dims{w.row, w.column});
    packing_.emplace(from, main_->b_desc(), kTypeOf<T>, context);
  }

  std::size_t packed_bytes() const { return main_->b_desc().get_size(); }
  void pack(const float* weights, void* to) const { packing_->run(weights, to); }

  /// `after(first_row, rows, tile)` is called for each tile [rows,n] of fp32 after its product.
  template <class After>
  void run(const T* x, const void* b, T* y, After&& after) const {
    context_.team.each((rows_ + tile_ - 1) / tile_, [&](std::int64_t i, int thread) {
      const std::int64_t first = i * tile_, rows = std::min(tile_, rows_ - first);
      const Product& product = rows == tile_ ? *main_ : *tail_;
      float* tile = nullptr;
      if constexpr (kInPlace)
        tile = y + first * n_;
      else
        tile = static_cast<float*>(context_.workspace.of(thread));
      product.run(thread, x + first * k_, b, tile);
      after(first, rows, tile);
    });
  }

 private:
  static constexpr bool kInPlace = std::is_same_v<T, float>;
  const Context& context_;
  std::int64_t rows_, k_, n_, tile_;
  std::optional<Product> main_, tail_;
  mutable std::optional<Packing> packing_;
};

// Tiles are only as small as sharing the work requires, because a product copies its operands.
inline constexpr std::int64_t kOuterRows = 192, kOuterColumns = 384;

/// dw[m,n] (+)= left[R,m]^T right[R,n], in tiles of dw, with the depth in passes of about kDepth.
template <class T>
class OuterTiles {
 public:
  OuterTiles(std::int64_t rows, std::int64_t m, std::int64_t n, Context& context)
      : context_(context),
        depth_{rows, even_piece(rows, kDepth)},
        row_{m, kOuterRows},
        column_{n, kOuterColumns} {
    for (const bool last_depth : {false, true})
      for (const bool last_row : {false, true})
        for (const bool last_column : {false, true})
          for (const bool accumulate : {false, true}) {
            const ProductShape shape{.type = kTypeOf<T>,
                                     .m = row_.length(last_row),
                                     .k = depth_.length(last_depth),
                                     .n = column_.length(last_column),
                                     .a_row = 1,
                                     .a_column = m,
                                     .b_row = n,
                                     .b_column = 1,
                                     .c_row = n,
                                     .accumulate = accumulate};
            if (shape.m == 0 || shape.k == 0 || shape.n == 0) continue;
            products_[index(last_depth, last_row, last_column, accumulate)].emplace(shape, context);
          }
  }

  void run(const T* left, const T* right, float* dw, bool accumulate) const {
    const std::int64_t m = row_.all, n = column_.all;
    for (std::int64_t p = 0; p < depth_.count(); ++p) {
      const std::int64_t depth = p * depth_.piece;
      context_.team.each(row_.count() * column_.count(), [&](std::int64_t i, int thread) {
        const std::int64_t r = i / column_.count(), c = i % column_.count();
        const std::int64_t row = r * kOuterRows, column = c * kOuterColumns;
        products_[index(depth_.last(p), row_.last(r), column_.last(c), accumulate || p > 0)]->run(
            thread, left + depth * m + row, right + depth * n + column, dw + row * n + column);
      });
    }
  }

 private:
  static std::size_t index(bool last_depth, bool last_row, bool last_column, bool accumulate) {
    return (last_depth ? 8U : 0U) + (last_row ? 4U : 0U) + (last_column ? 2U : 0U) +
           (accumulate ? 1U : 0U);
  }

  const Context& context_;
  Cuts depth_, row_, column_;
  std::array<std::optional<Product>, 16> products_;
};

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

  /// `after(first_row, rows, tile)` is called for each tile [rows,n] of y after its product.
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

/// dw[m,n] (+)= left[R,m]^T right[R,n], in pieces of dw, with the depth in passes of about kDepth.
/// A piece is as large as the number of threads permits, because its rows and columns are packed
/// only for it. The size of the pieces does not affect dw.
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
  // Number of columns whose panels stay in L3, and the length up to which a side is not divided.
  static constexpr std::int64_t kMostColumns = 2048, kLeast = 96;

  /// Divides the work into about two pieces per thread, so that other threads can help a
  /// thread that has lost its core.
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
