// Graphs of operations for cuDNN, which runs one as a single kernel or few (plan.h); those of
// attention and its gradient, for what dnn_takes().
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/operators.h"

namespace concertina::cuda {

/// Operations on tensors of four dimensions, as values: cuDNN hears of them when they are planned.
class DnnGraph {
 public:
  using Four = std::array<std::int64_t, 4>;
  /// Tensors are known by their number; numbers below `first_free` are the caller's to give.
  using Tensor = std::int64_t;
  static constexpr Tensor kNone = -1;

  /// Stored: in memory, 16-byte aligned. Passed between operations: never stored.
  struct Operand {
    enum class Kind { stored, passed, value } kind;
    Tensor number;
    cudnnDataType_t type;
    Four dims, strides;
    float value = 0;
  };
  struct Operation {
    enum class Kind { pointwise, index, reduction, reshape, matmul } kind;
    Tensor x, b, y, t = kNone;  // operands, the result; what a selection goes by
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnReduceTensorOp_t how = CUDNN_REDUCE_TENSOR_ADD;
    std::int64_t axis = 0;
  };

  explicit DnnGraph(Tensor first_free) : next_(first_free) {}

  Tensor stored(Tensor number, cudnnDataType_t type, const Four& dims, const Four& strides);
  Tensor passed(cudnnDataType_t type, const Four& dims, const Four& strides);
  Tensor value(float value);

  /// y = mode(x, b), `b` and `t` where the mode has them.
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t = kNone,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// y[...] = its own index along `axis`; x only has its shape.
  void index(std::int64_t axis, Tensor x, Tensor y);
  void reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y);
  /// y = the elements of x, as y's dimensions and strides see them.
  void reshape(Tensor x, Tensor y);
  /// y = x b, of the last two dimensions.
  void matmul(Tensor x, Tensor b, Tensor y);

  const std::vector<Operand>& operands() const { return operands_; }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  Tensor next_;
  std::vector<Operand> operands_;
  std::vector<Operation> operations_;
};

/// The tensors in memory: the operands of core/ops.h, and `delta`, the row sums of dy * y.
enum DnnOperand : DnnGraph::Tensor { kQ = 1, kK, kV, kY, kLse, kDy, kDelta, kDq, kDk, kDv, kFree };

/// The graph computes kY and kLse from kQ, kK, kV.
DnnGraph attention_graph(const AttentionShape& shape);
/// The graph computes kDq, kDk, kDv from kQ, kK, kV, kY, kLse, kDy; kDelta is scratch.
DnnGraph attention_gradient_graph(const AttentionShape& shape);

}  // namespace concertina::cuda
