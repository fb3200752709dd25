#include "core/cuda/dnn_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace concertina::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;

}  // namespace

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type) {
  check(dnn().descriptor_create(type, &raw_), "cudnnBackendCreateDescriptor");
}

DnnDescriptor::~DnnDescriptor() {
  if (raw_ != nullptr) (void)dnn().descriptor_destroy(raw_);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t count, const void* values) {
  check(dnn().descriptor_set(raw_, name, type, count, values), "cudnnBackendSetAttribute");
}

std::int64_t DnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::int64_t most, void* values) const {
  std::int64_t count = 0;
  check(dnn().descriptor_get(raw_, name, type, most, &count, values), "cudnnBackendGetAttribute");
  return count;
}

void DnnDescriptor::finalize() {
  check(dnn().descriptor_finalize(raw_), "cudnnBackendFinalize");
}

DnnDescriptor& DnnGraph::describe(Tensor number, cudnnDataType_t type, const Four& dims,
                                  const Four& strides) {
  DnnDescriptor& tensor =
      tensors_.emplace_back(number, DnnDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR)).second;
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  return tensor;
}

DnnGraph::Tensor DnnGraph::stored(Tensor number, cudnnDataType_t type, const Four& dims,
                                  const Four& strides) {
  describe(number, type, dims, strides).finalize();
  return number;
}

DnnGraph::Tensor DnnGraph::passed(cudnnDataType_t type, const Four& dims, const Four& strides) {
  DnnDescriptor& tensor = describe(next_, type, dims, strides);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.finalize();
  return next_++;
}

DnnGraph::Tensor DnnGraph::value(float value) {
  DnnDescriptor& tensor = describe(next_, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1});
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.finalize();
  values_.emplace_back(next_, value);
  return next_++;
}

const DnnDescriptor& DnnGraph::of(Tensor number) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const auto& tensor) { return tensor.first == number; });
  CONCERTINA_CHECK(found != tensors_.end(), "no tensor {} in the graph", number);
  return found->second;
}

void DnnGraph::add_pointwise(DnnDescriptor how, Tensor x, Tensor b, Tensor y, Tensor t) {
  how.finalize();
  DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(x));
  if (b != kNone) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(b));
  if (t != kNone) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(t));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y));
  operation.finalize();
  parts_.push_back(std::move(how));
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t,
                         cudnnDataType_t compute) {
  DnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
  add_pointwise(std::move(how), x, b, y, t);
}

void DnnGraph::index(std::int64_t axis, Tensor x, Tensor y) {
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
  DnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  add_pointwise(std::move(how), x, kNone, y, kNone);
}

void DnnGraph::reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y) {
  DnnDescriptor& part = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  part.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
  part.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  part.finalize();
  DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, part);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(y));
  operation.finalize();
}

void DnnGraph::reshape(Tensor x, Tensor y) {
  DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y));
  operation.finalize();
}

void DnnGraph::matmul(Tensor a, Tensor b, Tensor c) {
  DnnDescriptor& part = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  part.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  part.finalize();
  DnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, part);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c));
  operation.finalize();
}

}  // namespace concertina::cuda
