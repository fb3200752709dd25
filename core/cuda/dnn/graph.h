// Graphs of operations for cuDNN, which runs each as one or a few kernels (plan.h); and the graphs
// of attention and its gradient, for shapes that dnn_takes().
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/operators.h"

namespace concertina::cuda {

/// Operations on four-dimensional tensors, as values. cuDNN receives them when a plan is made.
class DnnGraph {
 public:
  using Four = std::array<std::int64_t, 4>;
  /// Tensors are identified by number. Numbers below `first_free` are assigned by the caller.
  using Tensor = std::int64_t;
  static constexpr Tensor kNone = -1;

  /// Stored operands are in memory, 16-byte aligned; the others exist only between operations.
  struct Operand {
    enum class Kind { stored, passed, value } kind;
    Tensor number;
    cudnnDataType_t type;
    Four dims, strides;
    float value = 0;
  };
  struct Operation {
    enum class Kind { pointwise, index, reduction, reshape, matmul } kind;
    Tensor x, b, y, t = kNone;  // operands and result; `t` is the condition of a selection
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnReduceTensorOp_t how = CUDNN_REDUCE_TENSOR_ADD;
    std::int64_t axis = 0;
  };

  explicit DnnGraph(Tensor first_free) : next_(first_free) {}

  Tensor stored(Tensor number, cudnnDataType_t type, const Four& dims, const Four& strides);
  Tensor passed(cudnnDataType_t type, const Four& dims, const Four& strides);
  Tensor value(float value);

  /// y = mode(x, b), with `b` and `t` if the mode has them.
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t = kNone,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// y[...] = the index along `axis`; only the shape of x is used.
  void index(std::int64_t axis, Tensor x, Tensor y);
  void reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y);
  /// y = the elements of x with y's dimensions and strides.
  void reshape(Tensor x, Tensor y);
  /// y = x b, over the last two dimensions.
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

/// Returns the graph that computes kY and kLse from kQ, kK, kV.
DnnGraph attention_graph(const AttentionShape& shape);
/// Returns the graph that computes kDq, kDk, kDv from kQ, kK, kV, kY, kLse, kDy; kDelta is scratch.
DnnGraph attention_gradient_graph(const AttentionShape& shape);

}  // namespace concertina::cuda
