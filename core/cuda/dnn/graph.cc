#include "core/cuda/dnn/graph.h"

namespace concertina::cuda {

DnnGraph::Tensor DnnGraph::stored(Tensor number, cudnnDataType_t type, const Four& dims,
                                  const Four& strides) {
  operands_.push_back({Operand::Kind::stored, number, type, dims, strides});
  return number;
}

DnnGraph::Tensor DnnGraph::passed(cudnnDataType_t type, const Four& dims, const Four& strides) {
  operands_.push_back({Operand::Kind::passed, next_, type, dims, strides});
  return next_++;
}

DnnGraph::Tensor DnnGraph::value(float value) {
  constexpr Four kOne{1, 1, 1, 1};
  operands_.push_back({Operand::Kind::value, next_, CUDNN_DATA_FLOAT, kOne, kOne, value});
  return next_++;
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t,
                         cudnnDataType_t compute) {
  operations_.push_back({Operation::Kind::pointwise, x, b, y, t, mode, compute});
}

void DnnGraph::index(std::int64_t axis, Tensor x, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::index, .x = x, .b = kNone, .y = y, .axis = axis});
}

void DnnGraph::reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y) {
  operations_.push_back(
      {.kind = Operation::Kind::reduction, .x = x, .b = kNone, .y = y, .how = how});
}

void DnnGraph::reshape(Tensor x, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::reshape, .x = x, .b = kNone, .y = y});
}

void DnnGraph::matmul(Tensor x, Tensor b, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::matmul, .x = x, .b = b, .y = y});
}

}  // namespace concertina::cuda
