// A linear map: its three products, and epilogues that cuBLASLt cannot fuse.
#include <optional>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/linear_operands.h"
#include "core/cuda/operators.h"

namespace concertina::cuda {
namespace {

using Int = std::int64_t;

std::unique_ptr<LinearOperands> make_operands(const LinearShape& s, Context& context) {
  return in_fp8(s) ? make_fp8_operands(s, context) : make_stored_operands(s, context);
}

// For GELU, aux contains its input u in the compute type. cuBLASLt implements the tanh form.
class CudaLinear final : public Linear {
 public:
  CudaLinear(const LinearShape& s, Context& context)
      : Linear(s),
        context_(context),
        operands_(make_operands(s, context)),
        forward_(context.blas, operands_->forward_shape(), ProductEpilogue::nothing),
        biased_(context.blas, operands_->forward_shape(), ProductEpilogue::bias),
        input_(context.blas, operands_->input_shape(), ProductEpilogue::nothing),
        weight_(context.blas, operands_->weight_shape(), ProductEpilogue::nothing) {
    // In fp32, the undocumented precision of cuBLASLt's tanh would be noticeable.
    if (s.compute == DType::bf16) {
      gelu_.emplace(context.blas, operands_->forward_shape(), ProductEpilogue::gelu);
      gelu_input_.emplace(context.blas, operands_->input_shape(), ProductEpilogue::gelu_backward);
    }
    need(s, context.workspace);
  }

  std::size_t packed_bytes() const override { return cuda::packed_bytes(shape()); }
  void pack(const PackWeights& op) override { operands_->pack(op.weight, op.packed); }

  void forward(const LinearForward& op) override {
    const auto& [map, x, packed, bias, epilogue, y] = op;
    Product::Operands o = operands_->forward(x, packed);
    const bool activation = epilogue.is_activation();
    if (epilogue.kind == Epilogue::Kind::gelu && gelu_ && gelu_->able() && !bias.empty()) {
      o.bias = narrow(bias), o.c = y.data, o.aux = epilogue.operand.data;
      return run(*gelu_, o);
    }
    const View u = activation ? epilogue.operand : y;
    o.c = u.data;
    if (epilogue.kind == Epilogue::Kind::residual) o.add = epilogue.operand.data;
    if (!bias.empty() && biased_.able()) {
      o.bias = narrow(bias);
      run(biased_, o);
    } else {
      run(forward_, o);
      if (!bias.empty()) add_bias(context_.stream, bias, u);
    }
    if (activation) activate(context_.stream, epilogue.kind, u, y);
  }

  void backward_input(const LinearInput& op) override {
    Product::Operands o = operands_->input(op.dy, op.packed);
    o.c = op.dx.data;
    if (op.epilogue.kind == Epilogue::Kind::gelu && gelu_input_ && gelu_input_->able()) {
      o.aux = op.epilogue.operand.data;
      return run(*gelu_input_, o);
    }
    if (op.epilogue.kind == Epilogue::Kind::residual) o.add = op.epilogue.operand.data;
    run(input_, o);
    if (op.epilogue.is_activation())
      activate_backward(context_.stream, op.epilogue.kind, op.dx, op.epilogue.operand, op.dx);
  }

  // dbias uses our sums: cuBLASLt's bias gradient overwrites it, and adds in an unspecified order.
  void backward_weight(const LinearWeight& op) override {
    if (!op.dweight.empty()) {
      Product::Operands o = operands_->weight(op.x, op.dy);
      o.c = op.dweight.data;
      if (op.accumulate) o.add = op.dweight.data;
      run(weight_, o);
    }
    if (!op.dbias.empty())
      column_sums(context_.stream, op.dy, op.dbias, op.accumulate, context_.workspace.scratch());
  }

 private:
  void run(const Product& product, const Product::Operands& operands) {
    product.run(operands, context_.workspace.scratch(), context_.stream);
  }

  /// Returns the bias in the type that the product needs.
  const void* narrow(View bias) {
    if (shape().compute == DType::f32) return bias.data;
    const View copy{context_.workspace.bias(), bias.count, shape().compute};
    cast(context_.stream, bias, copy);
    return copy.data;
  }

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
