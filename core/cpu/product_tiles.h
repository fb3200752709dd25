// Products of linear maps by oneDNN, in tiles that do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "core/cpu/linear_cuts.h"
#include "core/cpu/product.h"

namespace concertina::cpu {

/// y[R,n] = x[R,k] B: whole tiles by one product, the last rows by another with the same packing.
/// The fp32 of a tile goes to its place in y; where y is narrower, to scratch.
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

  /// `after(first_row, rows, tile)` runs on each tile [rows,n] of fp32 after its product.
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

// Tiles are as small as threads to share them want, and no smaller: a product copies what it reads.
inline constexpr std::int64_t kOuterRows = 192, kOuterColumns = 384;

/// dw[m,n] (+)= left[R,m]^T right[R,n]: tiles of dw, depth in passes of about kDepth.
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

}  // namespace concertina::cpu
