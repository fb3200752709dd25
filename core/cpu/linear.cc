#include "core/cpu/operators.h"

#include "core/cpu/linear_tiles.h"
#include "core/ops.h"

namespace concertina::cpu {
namespace {

constexpr Int kBiasColumns = 128;

/// Epilogues are applied to each tile of rows while it is in cache. `Rows` and `Outer` are the
/// products, computed by oneDNN or by this project's loops.
template <class T, template <class> class Rows, template <class> class Outer>
class CpuLinear final : public Linear {
 public:
  CpuLinear(const LinearShape& s, const ActivationLoops<T>& loops, Context& context)
      : Linear(s),
        loops_(loops),
        context_(context),
        forward_(s.rows, weights(s), context),
        backward_offset_(align_up(forward_.packed_bytes())) {
    if (s.infers) return;
    backward_.emplace(s.rows, transposed(weights(s)), context);
    outer_.emplace(s.rows, s.transposed ? s.out : s.in, s.transposed ? s.in : s.out, context);
  }

  std::size_t packed_bytes() const override {
    return backward_offset_ + (backward_ ? align_up(backward_->packed_bytes()) : 0);
  }

  void pack(const PackWeights& op) override {
    context_.team.each(backward_ ? 2 : 1, [&](Int direction, int) {
      if (direction == 0)
        forward_.pack(op.weight.f32(), op.packed);
      else
        backward_->pack(op.weight.f32(), backward_part(op.packed));
    });
  }

  void forward(const LinearForward& op) override {
    const Int n = shape().out;
    const float* b = op.bias.f32();
    T *out = op.y.as<T>(), *operand = op.epilogue.operand.as<T>();
    const auto activation = activation_of(op.epilogue.kind);
    forward_.run(op.x.as<T>(), op.packed, activation != nullptr ? operand : out,
                 [&](Int first, Int rows, float* tile) {
                   const Int at = first * n;
                   if (activation != nullptr)
                     activation(tile, b, out + at, operand + at, rows, n);
                   else
                     finish(tile, b, operand == nullptr ? nullptr : operand + at, out + at, rows,
                            n);
                 });
  }

  void backward_input(const LinearInput& op) override {
    const Int n = shape().in;
    const void* weights = backward_part(const_cast<void*>(op.packed));
    T* out = op.dx.as<T>();
    const T* operand = op.epilogue.operand.as<T>();
    const bool activation = op.epilogue.is_activation();
    backward_->run(op.dy.as<T>(), weights, out, [&](Int first, Int rows, float* tile) {
      const Int at = first * n;
      if (activation)
        loops_.multiply(tile, operand + at, out + at, rows * n);
      else
        finish(tile, nullptr, operand == nullptr ? nullptr : operand + at, out + at, rows, n);
    });
  }

  void backward_weight(const LinearWeight& op) override {
    const T *in = op.x.as<T>(), *grad = op.dy.as<T>();
    const bool swapped = shape().transposed;
    if (!op.dweight.empty())
      outer_->run(swapped ? grad : in, swapped ? in : grad, op.dweight.f32(), op.accumulate);
    if (op.dbias.empty()) return;
    const Int n = shape().out;
    context_.team.runs(n, kBiasColumns, [&](Int begin, Int end) {
      loops_.column_sum(grad + begin, shape().rows, n, end - begin, op.dbias.f32() + begin,
                        op.accumulate);
    });
  }

 private:
  static Weights weights(const LinearShape& s) {
    return {s.in, s.out, s.transposed ? 1 : s.out, s.transposed ? s.in : 1};
  }
  static Weights transposed(const Weights& w) { return {w.n, w.k, w.column, w.row}; }

  /// Returns null if there is no activation.
  auto activation_of(Epilogue::Kind kind) const -> decltype(ActivationLoops<T>::gelu) {
    switch (kind) {
      case Epilogue::Kind::gelu:
        return loops_.gelu;
      case Epilogue::Kind::gelu_erf:
        return loops_.gelu_erf;
      case Epilogue::Kind::relu:
        return loops_.relu;
      case Epilogue::Kind::silu:
        return loops_.silu;
      case Epilogue::Kind::none:
      case Epilogue::Kind::residual:
        return nullptr;
    }
    return nullptr;
  }

  /// y = tile + bias + residual; bias and residual may be null.
  void finish(const float* tile, const float* bias, const T* residual, T* y, Int rows,
              Int n) const {
    const bool there = static_cast<const void*>(tile) == y;
    if (!there || bias != nullptr || residual != nullptr)
      loops_.bias_residual(tile, bias, residual, y, rows, n);
  }

  void* backward_part(void* packed) const {
    return static_cast<std::byte*>(packed) + backward_offset_;
  }

  const ActivationLoops<T>& loops_;
  const Context& context_;
  Rows<T> forward_;
  std::optional<Rows<T>> backward_;
  std::optional<Outer<T>> outer_;
  std::size_t backward_offset_;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context) {
  if (shape.compute == DType::bf16)
    return std::make_unique<CpuLinear<Bf16, RowTiles, OuterTiles>>(shape, context.loops.bf16,
                                                                   context);
  if (context.panel_products != nullptr)
    return std::make_unique<CpuLinear<float, PanelRows, PanelOuter>>(shape, context.loops.f32,
                                                                     context);
  return std::make_unique<CpuLinear<float, RowTiles, OuterTiles>>(shape, context.loops.f32,
                                                                  context);
}

}  // namespace concertina::cpu
