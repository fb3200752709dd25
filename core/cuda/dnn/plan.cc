#include "core/cuda/dnn/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace concertina::cuda {
namespace {

/// May an engine's results differ from run to run?
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
  if (wavers(engine)) return "an engine whose results differ from run to run";
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
    return fmt::format("it wants {} bytes of scratch, more than {}", scratch_, most_scratch);
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
  if (reasons.empty()) reasons = "it names no engine; it wants libnvrtc too";
  throw_failure("cuDNN has no plan: " + reasons, "cuDNN",
                "CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr tell why");
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
