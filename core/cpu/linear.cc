#include "core/cpu/linear.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "core/cpu/product.h"
#include "core/error.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

// Rows of a tile: enough to reuse the weights from L3 (32 FLOP a byte), few enough that a tile of
// 4C columns stays in L2 for its epilogue. Part of the numerics: changing it may change bits.
constexpr Int kTileRows = 64;
// Rows of x and dy that one pass of a weight gradient reads: the tiles of the pass share them in
// L3. Tiles are as small as threads to share them want, and no smaller: a product of bf16 copies
// what it reads.
constexpr Int kDepth = 1024, kOuterRows = 192, kOuterColumns = 384;
constexpr Int kBiasColumns = 128;

/// y[R,n] = x[R,k] B: whole tiles by one product, the last rows by another with the same packing.
/// The fp32 of a tile goes to its place in y; where y is narrower, to scratch.
template <class T>
class RowTiles {
 public:
  RowTiles(Int rows, Int k, Int n, Context& context)
      : context_(context), rows_(rows), k_(k), n_(n), tile_(std::min(rows, kTileRows)) {
    ProductShape shape{.type = kTypeOf<T>, .m = tile_, .k = k, .n = n};
    shape.a_row = k, shape.a_column = 1, shape.c_row = n;
    main_.emplace(shape, context);
    shape.m = rows % tile_;
    if (shape.m != 0) tail_.emplace(shape, context, &main_->b_desc());
    if (!kInPlace) context.workspace.need(static_cast<std::size_t>(tile_ * n) * sizeof(float));
  }

  const dnnl::memory::desc& packed() const { return main_->b_desc(); }

  /// `after(first_row, rows, tile)` runs on each tile [rows,n] of fp32 behind its product.
  template <class After>
  void run(const T* x, const void* b, T* y, After&& after) const {
    context_.team.each((rows_ + tile_ - 1) / tile_, [&](Int i, int thread) {
      const Int first = i * tile_, rows = std::min(tile_, rows_ - first);
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
  Int rows_, k_, n_, tile_;
  std::optional<Product> main_, tail_;
};

/// dw[m,n] (+)= left[R,m]^T right[R,n]: tiles of dw, depth in passes of kDepth.
template <class T>
class OuterTiles {
 public:
  OuterTiles(Int rows, Int m, Int n, Context& context)
      : context_(context), depth_{rows, kDepth}, row_{m, kOuterRows}, column_{n, kOuterColumns} {
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
    const Int m = row_.all, n = column_.all;
    for (Int p = 0; p < depth_.count(); ++p) {
      const Int depth = p * kDepth;
      context_.team.each(row_.count() * column_.count(), [&](Int i, int thread) {
        const Int r = i / column_.count(), c = i % column_.count();
        const Int row = r * kOuterRows, column = c * kOuterColumns;
        products_[index(depth_.last(p), row_.last(r), column_.last(c), accumulate || p > 0)]->run(
            thread, left + depth * m + row, right + depth * n + column, dw + row * n + column);
      });
    }
  }

 private:
  /// [0, all) cut into pieces of `piece`; what is left over is the last one.
  struct Cuts {
    Int all, piece;
    Int count() const { return (all + piece - 1) / piece; }
    bool last(Int i) const { return (i + 1) * piece > all; }
    /// Of a whole piece, or of the one left over; 0: there is none.
    Int length(bool last) const { return last ? all % piece : all < piece ? 0 : piece; }
  };
  static std::size_t index(bool last_depth, bool last_row, bool last_column, bool accumulate) {
    return (last_depth ? 8U : 0U) + (last_row ? 4U : 0U) + (last_column ? 2U : 0U) +
           (accumulate ? 1U : 0U);
  }

  const Context& context_;
  Cuts depth_, row_, column_;
  std::array<std::optional<Product>, 16> products_;
};

template <class T>
class CpuLinear final : public Linear {
 public:
  CpuLinear(const LinearShape& s, const ActivationLoops<T>& loops, Context& context)
      : shape_(s),
        loops_(loops),
        context_(context),
        forward_(s.rows, s.in, s.out, context),
        backward_(s.rows, s.out, s.in, context),
        outer_(s.rows, s.transposed ? s.out : s.in, s.transposed ? s.in : s.out, context) {
    using dnnl::memory;
    const memory::dims in_out{s.transposed ? 1 : s.out, s.transposed ? s.in : 1};
    const memory::dims out_in{in_out[1], in_out[0]};
    const memory::desc forward({s.in, s.out}, memory::data_type::f32, in_out);
    const memory::desc backward({s.out, s.in}, memory::data_type::f32, out_in);
    pack_.emplace_back(forward, forward_.packed(), s.compute, context);
    pack_.emplace_back(backward, backward_.packed(), s.compute, context);
    backward_offset_ = align_up(forward_.packed().get_size());
  }

  std::size_t packed_bytes() const override {
    return backward_offset_ + align_up(backward_.packed().get_size());
  }

  void pack(View weight, void* packed) override {
    context_.team.each(2, [&](Int direction, int) {
      pack_[static_cast<std::size_t>(direction)].run(
          weight.f32(), direction == 0 ? packed : backward_part(packed));
    });
  }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    check(x, shape_.in, "x");
    check(y, shape_.out, "y");
    const Int n = shape_.out;
    const float* b = bias.f32();
    T *out = y.as<T>(), *operand = epilogue.operand.as<T>();
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    forward_.run(x.as<T>(), packed, gelu ? operand : out, [&](Int first, Int rows, float* tile) {
      const Int at = first * n;
      if (gelu)
        loops_.gelu(tile, b, out + at, operand + at, rows, n);
      else
        finish(tile, b, operand == nullptr ? nullptr : operand + at, out + at, rows, n);
    });
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    check(dy, shape_.out, "dy");
    check(dx, shape_.in, "dx");
    const Int n = shape_.in;
    const void* weights = backward_part(const_cast<void*>(packed));
    T* out = dx.as<T>();
    const T* slope = epilogue.operand.as<T>();
    backward_.run(dy.as<T>(), weights, out, [&](Int first, Int rows, float* tile) {
      const Int at = first * n;
      if (slope != nullptr)
        loops_.multiply(tile, slope + at, out + at, rows * n);
      else
        finish(tile, nullptr, nullptr, out + at, rows, n);
    });
  }

  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    check(x, shape_.in, "x");
    check(dy, shape_.out, "dy");
    const T *in = x.as<T>(), *grad = dy.as<T>();
    outer_.run(shape_.transposed ? grad : in, shape_.transposed ? in : grad, dweight.f32(),
               accumulate);
    if (dbias.empty()) return;
    const Int n = shape_.out;
    context_.team.runs(n, kBiasColumns, [&](Int begin, Int end) {
      loops_.column_sum(grad + begin, shape_.rows, n, end - begin, dbias.f32() + begin, accumulate);
    });
  }

 private:
  /// y = tile + bias + residual, of which either may be null.
  void finish(const float* tile, const float* bias, const T* residual, T* y, Int rows,
              Int n) const {
    const bool there = static_cast<const void*>(tile) == y;
    if (!there || bias != nullptr || residual != nullptr)
      loops_.bias_residual(tile, bias, residual, y, rows, n);
  }

  void* backward_part(void* packed) const {
    return static_cast<std::byte*>(packed) + backward_offset_;
  }

  void check(View view, Int columns, const char* name) const {
    CONCERTINA_CHECK(view.count == static_cast<std::size_t>(shape_.rows * columns),
                     "linear {}: {} elements, not {} x {}", name, view.count, shape_.rows, columns);
  }

  LinearShape shape_;
  const ActivationLoops<T>& loops_;
  const Context& context_;
  RowTiles<T> forward_, backward_;
  OuterTiles<T> outer_;
  std::vector<Packing> pack_;
  std::size_t backward_offset_ = 0;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context) {
  if (shape.compute == DType::bf16)
    return std::make_unique<CpuLinear<Bf16>>(shape, context.loops.bf16, context);
  return std::make_unique<CpuLinear<float>>(shape, context.loops.f32, context);
}

}  // namespace concertina::cpu
