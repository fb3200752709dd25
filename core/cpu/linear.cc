#include "core/cpu/linear.h"

#include <algorithm>
#include <optional>

#include "core/cpu/product.h"
#include "core/error.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

// Rows of a tile: enough to reuse the weights from L3 (32 FLOP a byte), few enough that a tile of
// 4C columns stays in L2 for its epilogue. Part of the numerics: changing it may change bits.
constexpr Int kTileRows = 64;
// Rows of x and dy that one pass of a weight gradient reads: the tiles of the pass share them in
// L3.
constexpr Int kDepth = 1024;
constexpr Int kBiasColumns = 128;

/// y[R,n] = x[R,k] B: whole tiles by one product, the last rows by another with the same packing.
class RowTiles {
 public:
  RowTiles(Int rows, Int k, Int n, Workspace& workspace, const Team& team)
      : rows_(rows), k_(k), n_(n) {
    const Int tile = std::min(rows, kTileRows);
    ProductShape shape{.m = tile, .k = k, .n = n, .a_row = k, .a_column = 1, .c_row = n};
    main_.emplace(shape, workspace, team.threads());
    shape.m = rows % tile;
    if (shape.m != 0) tail_.emplace(shape, workspace, team.threads(), &main_->b_desc());
    tile_ = tile;
  }

  const dnnl::memory::desc& packed() const { return main_->b_desc(); }

  /// `after(first_row, rows)` runs on each tile behind its product.
  template <class After>
  void run(const Team& team, const float* x, const void* b, float* y, After&& after) {
    team.each((rows_ + tile_ - 1) / tile_, [&](Int i, int thread) {
      const Int first = i * tile_, rows = std::min(tile_, rows_ - first);
      Product& product = rows == tile_ ? *main_ : *tail_;
      product.run(thread, x + first * k_, b, y + first * n_);
      after(first, rows);
    });
  }

 private:
  Int rows_, k_, n_, tile_ = 0;
  std::optional<Product> main_, tail_;
};

/// dw[m,n] (+)= left[R,m]^T right[R,n]: tiles of dw's rows, depth in passes of kDepth.
class OuterTiles {
 public:
  OuterTiles(Int rows, Int m, Int n, Workspace& workspace, const Team& team)
      : rows_(rows), m_(m), n_(n), tile_(std::min(m, kTileRows)) {
    for (const bool last_depth : {false, true})
      for (const bool last_tile : {false, true})
        for (const bool accumulate : {false, true}) {
          const Int depth = last_depth ? rows % kDepth : std::min(rows, kDepth);
          const Int tile = last_tile ? m % tile_ : tile_;
          if (depth == 0 || tile == 0 || (!last_depth && rows < kDepth)) continue;
          ProductShape shape{.m = tile,
                             .k = depth,
                             .n = n,
                             .a_row = 1,
                             .a_column = m,
                             .b_row = n,
                             .b_column = 1,
                             .c_row = n};
          shape.accumulate = accumulate;
          at(last_depth, last_tile, accumulate).emplace(shape, workspace, team.threads());
        }
  }

  void run(const Team& team, const float* left, const float* right, float* dw, bool accumulate) {
    for (Int depth = 0; depth < rows_; depth += kDepth) {
      const bool last_depth = depth + kDepth > rows_, add = accumulate || depth > 0;
      team.each((m_ + tile_ - 1) / tile_, [&](Int i, int thread) {
        const bool last_tile = (i + 1) * tile_ > m_;
        at(last_depth, last_tile, add)
            ->run(thread, left + depth * m_ + i * tile_, right + depth * n_, dw + i * tile_ * n_);
      });
    }
  }

 private:
  std::optional<Product>& at(bool last_depth, bool last_tile, bool accumulate) {
    return products_[(last_depth ? 4U : 0U) + (last_tile ? 2U : 0U) + (accumulate ? 1U : 0U)];
  }

  Int rows_, m_, n_, tile_;
  std::array<std::optional<Product>, 8> products_;
};

class CpuLinear final : public Linear {
 public:
  CpuLinear(const LinearShape& s, const LoopTable& loops, const Team& team, Workspace& workspace)
      : shape_(s),
        loops_(loops),
        team_(team),
        forward_(s.rows, s.in, s.out, workspace, team),
        backward_(s.rows, s.out, s.in, workspace, team),
        outer_(s.rows, s.transposed ? s.out : s.in, s.transposed ? s.in : s.out, workspace, team) {
    using dnnl::memory;
    const memory::dims in_out{s.transposed ? 1 : s.out, s.transposed ? s.in : 1};
    const memory::dims out_in{in_out[1], in_out[0]};
    const memory::desc forward({s.in, s.out}, memory::data_type::f32, in_out);
    const memory::desc backward({s.out, s.in}, memory::data_type::f32, out_in);
    pack_.push_back(packing(forward, forward_.packed()));
    pack_.push_back(packing(backward, backward_.packed()));
    backward_offset_ = align_up(forward_.packed().get_size());
  }

  std::size_t packed_bytes() const override {
    return backward_offset_ + align_up(backward_.packed().get_size());
  }

  void pack(View weight, void* packed) override {
    team_.each(2, [&](Int direction, int) {
      Packing& one = pack_[static_cast<std::size_t>(direction)];
      one.from.set_data_handle(weight.data);
      one.to.set_data_handle(direction == 0 ? packed : backward_part(packed));
      const std::array<dnnl_exec_arg_t, 2> list{
          {{DNNL_ARG_FROM, one.from.get()}, {DNNL_ARG_TO, one.to.get()}}};
      const dnnl_status_t status =
          dnnl_primitive_execute(one.primitive.get(), one.stream.get(), 2, list.data());
      CONCERTINA_CHECK(status == dnnl_success, "oneDNN reorder returned {}",
                       static_cast<int>(status));
    });
  }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    check(x, shape_.in, "x");
    check(y, shape_.out, "y");
    const Int n = shape_.out;
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    float* product = gelu ? epilogue.operand.f32() : y.f32();
    forward_.run(team_, x.f32(), packed, product, [&](Int first, Int rows) {
      float* tile = product + first * n;
      if (gelu)
        loops_.gelu(tile, bias.f32(), y.f32() + first * n, rows, n);
      else if (epilogue.kind == Epilogue::Kind::residual)
        loops_.bias_residual(tile, bias.f32(), epilogue.operand.f32() + first * n, rows, n);
      else if (!bias.empty())
        loops_.bias(tile, bias.f32(), rows, n);
    });
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    check(dy, shape_.out, "dy");
    check(dx, shape_.in, "dx");
    const Int n = shape_.in;
    const void* weights = backward_part(const_cast<void*>(packed));
    backward_.run(team_, dy.f32(), weights, dx.f32(), [&](Int first, Int rows) {
      if (epilogue.kind == Epilogue::Kind::gelu)
        loops_.multiply(dx.f32() + first * n, epilogue.operand.f32() + first * n, rows * n);
    });
  }

  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    check(x, shape_.in, "x");
    check(dy, shape_.out, "dy");
    const float* left = shape_.transposed ? dy.f32() : x.f32();
    const float* right = shape_.transposed ? x.f32() : dy.f32();
    outer_.run(team_, left, right, dweight.f32(), accumulate);
    if (dbias.empty()) return;
    const Int n = shape_.out;
    team_.runs(n, kBiasColumns, [&](Int begin, Int end) {
      loops_.column_sum(dy.f32() + begin, shape_.rows, n, end - begin, dbias.f32() + begin,
                        accumulate);
    });
  }

 private:
  struct Packing {
    dnnl::reorder primitive;
    dnnl::memory from, to;
    dnnl::stream stream;
  };

  static Packing packing(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
    return {dnnl::reorder(dnnl::reorder::primitive_desc(engine(), from, engine(), to)),
            dnnl::memory(from, engine(), nullptr), dnnl::memory(to, engine(), nullptr),
            dnnl::stream(engine())};
  }

  void* backward_part(void* packed) const {
    return static_cast<std::byte*>(packed) + backward_offset_;
  }

  void check(View view, Int columns, const char* name) const {
    CONCERTINA_CHECK(view.count == static_cast<std::size_t>(shape_.rows * columns),
                     "linear {}: {} elements, not {} x {}", name, view.count, shape_.rows, columns);
  }

  LinearShape shape_;
  const LoopTable& loops_;
  const Team& team_;
  RowTiles forward_, backward_;
  OuterTiles outer_;
  std::vector<Packing> pack_;
  std::size_t backward_offset_ = 0;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearShape& shape, const LoopTable& loops,
                                    const Team& team, Workspace& workspace) {
  return std::make_unique<CpuLinear>(shape, loops, team, workspace);
}

}  // namespace concertina::cpu
