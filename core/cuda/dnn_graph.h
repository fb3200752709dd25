// Graphs of operations for cuDNN, and plans that run one as a single kernel or few.
// Invariant: which plan is taken follows from the graph, cuDNN's version and the kind of device; it
// is never measured, and none that may differ from run to run is taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/dnn.h"

namespace concertina::cuda {

class DnnDescriptor {
 public:
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type);
  ~DnnDescriptor();
  DnnDescriptor(DnnDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, {&value, 1}); }
  void set(cudnnBackendAttributeName_t name, bool value) {
    set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
  }
  /// Elements that it has of this attribute; no more than `most` are written to `values`.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t most, void* values) const;
  void finalize();

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// Where a graph shall run: the device of a handle, or one that is described (cuDNN's JSON): plans
/// for that are made without a device, and cannot run.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

/// Operations on tensors of four dimensions. Tensors between operations are never stored.
class DnnGraph {
 public:
  using Four = std::array<std::int64_t, 4>;
  /// Tensors are known by their number; numbers below `first_free` are the caller's to give.
  using Tensor = std::int64_t;
  explicit DnnGraph(Tensor first_free) : next_(first_free) {}

  /// In memory, 16-byte aligned, under the caller's number.
  Tensor stored(Tensor number, cudnnDataType_t type, const Four& dims, const Four& strides);
  /// Between operations.
  Tensor passed(cudnnDataType_t type, const Four& dims, const Four& strides);
  Tensor value(float value);

  /// y = mode(x, b), `b` and `t` (what a selection goes by) where the mode has them.
  static constexpr Tensor kNone = -1;
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t = kNone,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// y[...] = its own index along `axis`; x only has its shape.
  void index(std::int64_t axis, Tensor x, Tensor y);
  void reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y);
  /// y = the elements of x, as y's dimensions and strides see them.
  void reshape(Tensor x, Tensor y);
  void matmul(Tensor a, Tensor b, Tensor c);

  const DnnDescriptor& of(Tensor number) const;

 private:
  friend class DnnPlan;
  DnnDescriptor& describe(Tensor number, cudnnDataType_t type, const Four& dims,
                          const Four& strides);
  void add_pointwise(DnnDescriptor how, Tensor x, Tensor b, Tensor y, Tensor t);

  Tensor next_;
  std::vector<std::pair<Tensor, DnnDescriptor>> tensors_;
  std::vector<std::pair<Tensor, float>> values_;
  std::vector<DnnDescriptor> parts_;  // what operations refer to
  std::vector<DnnDescriptor> operations_;
};

/// What runs a graph: the first that cuDNN's heuristics name, that the device supports, that gives
/// the same bits each time, and that takes no more than `most_scratch` bytes.
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
  std::vector<DnnDescriptor> candidates(const DnnTarget& target) const;
  /// Why not; empty where it is the one.
  std::string take(DnnDescriptor& candidate, const DnnTarget& target, std::size_t most_scratch);

  DnnGraph graph_;
  DnnDescriptor operations_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::optional<DnnDescriptor> plan_;
  std::size_t scratch_ = 0;
};

}  // namespace concertina::cuda
