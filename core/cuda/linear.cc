// A linear map: its three products, and what follows them where cuBLASLt does not do that.
#include <optional>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/linear_operands.h"
#include "core/cuda/operators.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

using Int = std::int64_t;

std::unique_ptr<LinearOperands> make_operands(const LinearShape& s, Context& context) {
  return in_fp8(s) ? make_fp8_operands(s, context) : make_stored_operands(s, context);
}

// aux of a GELU holds u, what the GELU was of, in the compute type.
class CudaLinear final : public Linear {
 public:
  CudaLinear(const LinearShape& s, Context& context)
      : shape_(s),
        context_(context),
        operands_(make_operands(s, context)),
        forward_(context.blas, operands_->forward_shape(), Behind::nothing),
        biased_(context.blas, operands_->forward_shape(), Behind::bias),
        input_(context.blas, operands_->input_shape(), Behind::nothing),
        weight_(context.blas, operands_->weight_shape(), Behind::nothing) {
    // In fp32 the precision of cuBLASLt's tanh, of which nothing is said, would show.
    if (s.compute == DType::bf16) {
      gelu_.emplace(context.blas, operands_->forward_shape(), Behind::gelu);
      gelu_input_.emplace(context.blas, operands_->input_shape(), Behind::gelu_backward);
    }
    need(s, context.workspace);
  }

  std::size_t packed_bytes() const override { return cuda::packed_bytes(shape_); }
  void pack(View weight, void* packed) override { operands_->pack(weight, packed); }

  void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) override {
    check(x, shape_.in, "x");
    check(y, shape_.out, "y");
    Product::Operands o = operands_->forward(x, packed);
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    if (gelu && gelu_ && gelu_->able() && !bias.empty()) {
      o.bias = narrow(bias), o.c = y.data, o.aux = epilogue.operand.data;
      return run(*gelu_, o);
    }
    const View u = gelu ? epilogue.operand : y;
    o.c = u.data;
    if (epilogue.kind == Epilogue::Kind::residual) o.add = epilogue.operand.data;
    if (!bias.empty() && biased_.able()) {
      o.bias = narrow(bias);
      run(biased_, o);
    } else {
      run(forward_, o);
      if (!bias.empty()) add_bias(context_.stream, bias, u);
    }
    if (gelu) cuda::gelu(context_.stream, u, y);
  }

  void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) override {
    check(dy, shape_.out, "dy");
    check(dx, shape_.in, "dx");
    Product::Operands o = operands_->input(dy, packed);
    o.c = dx.data;
    const bool gelu = epilogue.kind == Epilogue::Kind::gelu;
    if (gelu && gelu_input_ && gelu_input_->able()) {
      o.aux = epilogue.operand.data;
      return run(*gelu_input_, o);
    }
    run(input_, o);
    if (gelu) gelu_backward(context_.stream, epilogue.operand, dx);
  }

  // dbias by own sums: cuBLASLt's bias gradient overwrites, and says nothing of its order.
  void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) override {
    check(x, shape_.in, "x");
    check(dy, shape_.out, "dy");
    Product::Operands o = operands_->weight(x, dy);
    o.c = dweight.data;
    if (accumulate) o.add = dweight.data;
    run(weight_, o);
    if (!dbias.empty())
      column_sums(context_.stream, dy, dbias, accumulate, context_.workspace.scratch());
  }

 private:
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
  std::unique_ptr<LinearOperands> operands_;
  Product forward_, biased_, input_, weight_;
  std::optional<Product> gelu_, gelu_input_;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context) {
  return std::make_unique<CudaLinear>(shape, context);
}

}  // namespace concertina::cuda
