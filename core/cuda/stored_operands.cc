#include "core/cuda/kernels/kernels.h"
#include "core/cuda/linear_operands.h"

namespace concertina::cuda {
namespace {

// The packed weights are a copy in the compute type, which both directions read, one transposed.
class StoredOperands final : public LinearOperands {
 public:
  StoredOperands(const LinearShape& shape, Context& context) : shape_(shape), context_(context) {}

  // W is stored as [I,O], or as [O,I] if transposed.
  ProductShape forward_shape() const override {
    return {.m = shape_.rows,
            .n = shape_.out,
            .k = shape_.in,
            .b_transposed = shape_.transposed,
            .a = format(),
            .b = format(),
            .out = shape_.compute};
  }
  ProductShape input_shape() const override {
    ProductShape s = forward_shape();
    s.n = shape_.in, s.k = shape_.out;
    s.b_transposed = !shape_.transposed;
    return s;
  }
  // dW[I,O] = x[R,I]^T dy[R,O], or dW[O,I] = dy^T x.
  ProductShape weight_shape() const override {
    ProductShape s = forward_shape();
    s.m = shape_.transposed ? shape_.out : shape_.in;
    s.n = shape_.transposed ? shape_.in : shape_.out;
    s.k = shape_.rows;
    s.a_transposed = true, s.b_transposed = false;
    s.out = DType::f32;
    return s;
  }

  void pack(View weight, void* packed) override {
    cast(context_.stream, weight, {packed, weight.count, shape_.compute});
  }

  Product::Operands forward(View x, const void* packed) override {
    return {.a = x.data, .b = packed};
  }
  Product::Operands input(View dy, const void* packed) override {
    return {.a = dy.data, .b = packed};
  }
  Product::Operands weight(View x, View dy) override {
    return shape_.transposed ? Product::Operands{.a = dy.data, .b = x.data}
                             : Product::Operands{.a = x.data, .b = dy.data};
  }

 private:
  Format format() const {
    if (shape_.compute == DType::bf16) return Format::bf16;
    return shape_.products == Products::tf32 ? Format::tf32 : Format::f32;
  }

  LinearShape shape_;
  Context& context_;
};

}  // namespace

std::unique_ptr<LinearOperands> make_stored_operands(const LinearShape& shape, Context& context) {
  return std::make_unique<StoredOperands>(shape, context);
}

}  // namespace concertina::cuda
