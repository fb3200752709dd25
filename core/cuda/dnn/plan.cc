#include "core/cuda/dnn/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"

namespace concertina::cuda {
namespace {

// Converts a graph to cuDNN objects: one per tensor, operation and operation descriptor.

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

/// Returns the descriptor of an operation without its operands; a reshape has nothing else.
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

/// Attribute names of an operation, by its kind.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t how, x, b, y, t;
};

Names names_of(Operation::Kind kind) {
  constexpr auto kNot = CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1;  // for operands that a kind lacks
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

// Plans.

/// Whether an engine's results may differ from run to run.
bool wavers(const DnnDescriptor& engine) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        notes.size(), notes.data());
  const auto end = notes.begin() + std::min<std::int64_t>(count, notes.size());
  return std::find(notes.begin(), end, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != end;
}

std::string last_reason(cudnnStatus_t status) {
  try {
    check(status, "cudnnBackendFinalize");
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace

void DnnPlan::lower() {
  std::map<DnnGraph::Tensor, std::size_t> at;  // index in parts_
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

std::vector<DnnDescriptor> DnnPlan::candidates(const DnnTarget& target) const {
  DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations_);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties != nullptr)
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristics.finalize();
  const std::int64_t most =
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<DnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i)
    raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  const std::int64_t count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  while (static_cast<std::int64_t>(found.size()) > count) found.pop_back();
  return found;
}

std::string DnnPlan::take(DnnDescriptor& candidate, const DnnTarget& target,
                          std::size_t most_scratch) {
  DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  candidate.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  if (wavers(engine)) return "the engine's results differ from run to run";
  DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate);
  if (target.properties != nullptr)
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  else
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (const std::string reason = last_reason(dnn().descriptor_finalize(plan.raw()));
      !reason.empty())
    return reason;
  std::int64_t bytes = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  scratch_ = static_cast<std::size_t>(bytes);
  if (scratch_ > most_scratch)
    return fmt::format("it needs {} bytes of scratch, more than {}", scratch_, most_scratch);
  plan_.emplace(std::move(plan));
  return {};
}

DnnPlan::DnnPlan(DnnGraph graph, const DnnTarget& target, std::size_t most_scratch)
    : graph_(std::move(graph)) {
  lower();
  if (target.handle != nullptr)
    operations_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  operations_.finalize();
  std::string reasons;
  for (DnnDescriptor& candidate : candidates(target)) {
    const std::string reason = take(candidate, target, most_scratch);
    if (reason.empty()) return;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (reasons.empty()) reasons = "it offers no engine; it may lack libnvrtc";
  throw_failure("cuDNN has no plan: " + reasons, "cuDNN",
                "CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr show why");
}

DnnDescriptor DnnPlan::pack(std::span<const Address> addresses, void* scratch) const {
  std::vector<std::int64_t> numbers;
  std::vector<const void*> pointers;
  for (const auto& [number, address] : addresses) {
    numbers.push_back(number);
    pointers.push_back(address);
  }
  for (const DnnGraph::Operand& operand : graph_.operands()) {
    if (operand.kind != DnnGraph::Operand::Kind::value) continue;
    numbers.push_back(operand.number);
    pointers.push_back(&operand.value);
  }
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(numbers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize();
  return pack;
}

void DnnPlan::run(cudnnHandle_t handle, const DnnDescriptor& pack) const {
  check(dnn().execute(handle, plan_->raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace concertina::cuda
