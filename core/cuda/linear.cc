#include "core/cuda/operators.h"

#include <optional>

#include "core/cuda/kernels.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

using Int = std::int64_t;

// aux of a GELU holds u, what the GELU was of, in the compute type.
class CudaLinear final : public Linear {
 public:
  CudaLinear(const LinearShape& s, Context& context)
      : shape_(s),
        context_(context),
        forward_(context.blas, forward_shape(), Behind::nothing),
        biased_(context.blas, forward_shape(), Behind::bias),
        input_(context.blas, input_shape(), Behind::nothing),
        weight_(context.blas, weight_shape(), Behind::nothing) {
    // In fp32 the precision of cuBLASLt's tanh, of which nothing is said, would show.
    if (s.compute == DType::bf16) {
      gelu_.emplace(context.blas, forward_shape(), Behind::gelu);
      gelu_input_.emplace(context.blas, input_shape(), Behind::gelu_backward);
    }
    need(s, context.workspace);
  }

  std::size_t packed_bytes() const override { return cuda::packed_bytes(shape_); }

  void pack(View weight, void* packed) override {
    cast(context_.stream, weight, {packed, weight.count, shape_.compute});
  }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    check(x, shape_.in, "x");
    check(y, shape_.out, "y");
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    if (gelu && gelu_ && gelu_->able() && !bias.empty()) {
      run(*gelu_, {.a = x.data,
                   .b = packed,
                   .bias = narrow(bias),
                   .c = y.data,
                   .aux = epilogue.operand.data});
      return;
    }
    const View u = gelu ? epilogue.operand : y;
    const void* add = epilogue.kind == Epilogue::Kind::residual ? epilogue.operand.data : nullptr;
    if (!bias.empty() && biased_.able()) {
      run(biased_, {.a = x.data, .b = packed, .bias = narrow(bias), .c = u.data, .add = add});
    } else {
      run(forward_, {.a = x.data, .b = packed, .c = u.data, .add = add});
      if (!bias.empty()) add_bias(context_.stream, bias, u);
    }
    if (gelu) cuda::gelu(context_.stream, u, y);
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    check(dy, shape_.out, "dy");
    check(dx, shape_.in, "dx");
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    if (gelu && gelu_input_ && gelu_input_->able()) {
      run(*gelu_input_, {.a = dy.data, .b = packed, .c = dx.data, .aux = epilogue.operand.data});
      return;
    }
    run(input_, {.a = dy.data, .b = packed, .c = dx.data});
    if (gelu) gelu_backward(context_.stream, epilogue.operand, dx);
  }

  // dbias by own sums: cuBLASLt's bias gradient overwrites, and says nothing of its order.
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    check(x, shape_.in, "x");
    check(dy, shape_.out, "dy");
    const bool t = shape_.transposed;
    run(weight_, {.a = t ? dy.data : x.data,
                  .b = t ? x.data : dy.data,
                  .c = dweight.data,
                  .add = accumulate ? dweight.data : nullptr});
    if (!dbias.empty())
      column_sums(context_.stream, dy, dbias, accumulate, context_.workspace.scratch());
  }

 private:
  // y[R,O] = x[R,I] W; W is stored [I,O], or [O,I] if transposed.
  ProductShape forward_shape() const {
    return {.m = shape_.rows,
            .n = shape_.out,
            .k = shape_.in,
            .b_transposed = shape_.transposed,
            .in = shape_.compute,
            .out = shape_.compute,
            .tf32 = context_.tf32};
  }
  // dx[R,I] = dy[R,O] W^T.
  ProductShape input_shape() const {
    ProductShape s = forward_shape();
    s.n = shape_.in, s.k = shape_.out;
    s.b_transposed = !shape_.transposed;
    return s;
  }
  // dW[I,O] = x[R,I]^T dy[R,O], or dW[O,I] = dy^T x; in fp32.
  ProductShape weight_shape() const {
    ProductShape s = forward_shape();
    s.m = shape_.transposed ? shape_.out : shape_.in;
    s.n = shape_.transposed ? shape_.in : shape_.out;
    s.k = shape_.rows;
    s.a_transposed = true, s.b_transposed = false;
    s.out = DType::f32;
    return s;
  }

  void run(const Product& product, const Product::Operands& operands) {
    product.run(operands, context_.workspace.scratch(), context_.stream);
  }

  /// The bias in the type that the product wants.
  const void* narrow(View bias) {
    if (shape_.compute == DType::f32) return bias.data;
    const View copy{context_.workspace.bias(), bias.count, shape_.compute};
    cast(context_.stream, bias, copy);
    return copy.data;
  }

  void check(View view, Int columns, const char* name) const {
    CONCERTINA_CHECK(view.count == static_cast<std::size_t>(shape_.rows * columns),
                     "linear {}: {} elements, not {} x {}", name, view.count, shape_.rows, columns);
  }

  LinearShape shape_;
  Context& context_;
  Product forward_, biased_, input_, weight_;
  std::optional<Product> gelu_, gelu_input_;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context) {
  return std::make_unique<CudaLinear>(shape, context);
}

}  // namespace concertina::cuda
