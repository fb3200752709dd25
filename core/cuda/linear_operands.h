// The operands of the three products of a linear map: packed weights, and activations as they are
// or in the required precision. core/cuda/linear.cc adds the epilogues.
//
// Dimensions: R rows, I inputs, O outputs.
#pragma once

#include <memory>

#include "core/backend.h"
#include "core/cuda/operators.h"
#include "core/cuda/product.h"

namespace concertina::cuda {

class LinearOperands {
 public:
  virtual ~LinearOperands() = default;

  /// y[R,O] = x W.
  virtual ProductShape forward_shape() const = 0;
  /// dx[R,I] = dy W^T.
  virtual ProductShape input_shape() const = 0;
  /// dW in the shape of the stored W; fp32.
  virtual ProductShape weight_shape() const = 0;

  virtual void pack(View weight, void* packed) = 0;

  /// Returns the factors of a product, which stay valid until those of the next are prepared.
  virtual Product::Operands forward(View x, const void* packed) = 0;
  virtual Product::Operands input(View dy, const void* packed) = 0;
  virtual Product::Operands weight(View x, View dy) = 0;
};

/// For fp32, tf32 or bf16: W in that type, activations in place.
std::unique_ptr<LinearOperands> make_stored_operands(const LinearShape& shape, Context& context);

/// W and activations in E4M3, output gradients in E5M2 (core/cuda/fp8_operands.cc).
std::unique_ptr<LinearOperands> make_fp8_operands(const LinearShape& shape, Context& context);

}  // namespace concertina::cuda
