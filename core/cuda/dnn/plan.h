// Plans for cuDNN graphs.
// Invariant: the choice of a plan depends on the graph, cuDNN's version and the kind of device. No
// plan is chosen by measurement, and none whose results may differ from run to run is chosen.
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

/// Where a graph will run: on the device of a handle, or on a device of which only a description is
/// known (cuDNN's JSON); plans for the latter need no device and cannot run.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

/// A plan runs a graph. It is the first one from cuDNN's heuristics that the device supports, that
/// is deterministic, and that needs at most `most_scratch` bytes.
class DnnPlan {
 public:
  /// Throws Error{failure}, with cuDNN's reason, if there is no such plan.
  DnnPlan(DnnGraph graph, const DnnTarget& target, std::size_t most_scratch);

  std::size_t scratch_bytes() const { return scratch_; }

  using Address = std::pair<DnnGraph::Tensor, void*>;
  /// Packs the addresses of stored tensors, and scratch_bytes() of scratch, for run().
  DnnDescriptor pack(std::span<const Address> addresses, void* scratch) const;
  void run(cudnnHandle_t handle, const DnnDescriptor& pack) const;

 private:
  void lower();
  std::vector<DnnDescriptor> candidates(const DnnTarget& target) const;
  /// Tries a candidate, and returns why it cannot be used; empty if it is chosen.
  std::string take(DnnDescriptor& candidate, const DnnTarget& target, std::size_t most_scratch);

  DnnGraph graph_;
  std::vector<DnnDescriptor> parts_;  // referenced by the operations
  std::vector<DnnDescriptor> lowered_;
  DnnDescriptor operations_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::optional<DnnDescriptor> plan_;
  std::size_t scratch_ = 0;
};

}  // namespace concertina::cuda
