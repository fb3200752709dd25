// Plans for cuDNN's graphs.
// Invariant: which plan is taken follows from the graph, cuDNN's version and the kind of device; it
// is never measured, and none that may differ from run to run is taken.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/dnn/dnn.h"
#include "core/cuda/dnn/graph.h"

namespace concertina::cuda {

/// Where a graph shall run: the device of a handle, or one that is described (cuDNN's JSON): plans
/// for that are made without a device, and cannot run.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

/// A plan runs a graph. It is the first that cuDNN's heuristics name, that the device supports, that
/// gives the same bits each time, and that takes no more than `most_scratch` bytes.
class DnnPlan {
 public:
  /// Throws a failure, with cuDNN's reason, where there is none.
  DnnPlan(DnnGraph graph, const DnnTarget& target, std::size_t most_scratch);

  std::size_t scratch_bytes() const { return scratch_; }

  using Address = std::pair<DnnGraph::Tensor, void*>;
  /// Where the stored tensors are, and scratch_bytes() of scratch: what run() takes.
  DnnDescriptor pack(std::span<const Address> addresses, void* scratch) const;
  void run(cudnnHandle_t handle, const DnnDescriptor& pack) const;

 private:
  void lower();
  std::vector<DnnDescriptor> candidates(const DnnTarget& target) const;
  /// Why not; empty where it is the one.
  std::string take(DnnDescriptor& candidate, const DnnTarget& target, std::size_t most_scratch);

  DnnGraph graph_;
  std::vector<DnnDescriptor> parts_;  // what the operations refer to
  std::vector<DnnDescriptor> lowered_;
  DnnDescriptor operations_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::optional<DnnDescriptor> plan_;
  std::size_t scratch_ = 0;
};

}  // namespace concertina::cuda
