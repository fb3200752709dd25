// A graph in cuDNN's own objects: one for each tensor, for each operation and for what it does.
#include <map>

#include "core/cuda/dnn/plan.h"

namespace concertina::cuda {
namespace {

using Operand = DnnGraph::Operand;
using Operation = DnnGraph::Operation;
constexpr std::int64_t kOperandAlignment = 16;

DnnDescriptor describe(const Operand& operand) {
  DnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, operand.number);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, operand.type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, operand.dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, operand.strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kOperandAlignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, operand.kind == Operand::Kind::passed);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, operand.kind == Operand::Kind::value);
  tensor.finalize();
  return tensor;
}

/// What an operation does, apart from its operands; a reshape is nothing but those.
DnnDescriptor describe(const Operation& operation) {
  if (operation.kind == Operation::Kind::matmul) {
    DnnDescriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, operation.compute);
    how.finalize();
    return how;
  }
  if (operation.kind == Operation::Kind::reduction) {
    DnnDescriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation.how);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, operation.compute);
    how.finalize();
    return how;
  }
  DnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &operation.mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, operation.compute);
  if (operation.kind == Operation::Kind::index) how.set(CUDNN_ATTR_POINTWISE_AXIS, operation.axis);
  how.finalize();
  return how;
}

/// Names of an operation's attributes, by its kind.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t how, x, b, y, t;
};

Names names_of(Operation::Kind kind) {
  constexpr auto kNot = CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1;  // of operands that a kind lacks
  switch (kind) {
    case Operation::Kind::matmul:
      return {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
              CUDNN_ATTR_OPERATION_MATMUL_ADESC,         CUDNN_ATTR_OPERATION_MATMUL_BDESC,
              CUDNN_ATTR_OPERATION_MATMUL_CDESC,         kNot};
    case Operation::Kind::reduction:
      return {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
              CUDNN_ATTR_OPERATION_REDUCTION_XDESC,         kNot,
              CUDNN_ATTR_OPERATION_REDUCTION_YDESC,         kNot};
    case Operation::Kind::reshape:
      return {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, kNot,
              CUDNN_ATTR_OPERATION_RESHAPE_XDESC,         kNot,
              CUDNN_ATTR_OPERATION_RESHAPE_YDESC,         kNot};
    default:
      return {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  }
}

}  // namespace

void DnnPlan::lower() {
  std::map<DnnGraph::Tensor, std::size_t> at;  // in parts_
  for (const Operand& operand : graph_.operands()) {
    at[operand.number] = parts_.size();
    parts_.push_back(describe(operand));
  }
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Operation& operation : graph_.operations()) {
    const Names names = names_of(operation.kind);
    DnnDescriptor lowered(names.operation);
    if (operation.kind != Operation::Kind::reshape) {
      parts_.push_back(describe(operation));
      lowered.set(names.how, parts_.back());
    }
    lowered.set(names.x, parts_.at(at.at(operation.x)));
    if (operation.b != DnnGraph::kNone) lowered.set(names.b, parts_.at(at.at(operation.b)));
    lowered.set(names.y, parts_.at(at.at(operation.y)));
    if (operation.t != DnnGraph::kNone) lowered.set(names.t, parts_.at(at.at(operation.t)));
    lowered.finalize();
    raw.push_back(lowered.raw());
    lowered_.push_back(std::move(lowered));
  }
  operations_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  static_cast<std::int64_t>(raw.size()), raw.data());
}

}  // namespace concertina::cuda
