// cuDNN, loaded at run time, so that the program starts without it; and owners of its objects.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <span>
#include <utility>

#include "core/cuda/base/library.h"

namespace concertina::cuda {

#define CONCERTINA_CUDNN(X)                            \
  X(create, cudnnCreate)                               \
  X(destroy, cudnnDestroy)                             \
  X(set_stream, cudnnSetStream)                        \
  X(version, cudnnGetVersion)                          \
  X(error_string, cudnnGetErrorString)                 \
  X(last_error, cudnnGetLastErrorString)               \
  X(descriptor_create, cudnnBackendCreateDescriptor)   \
  X(descriptor_destroy, cudnnBackendDestroyDescriptor) \
  X(descriptor_set, cudnnBackendSetAttribute)          \
  X(descriptor_get, cudnnBackendGetAttribute)          \
  X(descriptor_finalize, cudnnBackendFinalize)         \
  X(execute, cudnnBackendExecute)

/// The functions in use, under their original names.
struct Dnn {
  CONCERTINA_CUDNN(CONCERTINA_LIBRARY_MEMBER)
};

/// Loads the library on the first call. Throws Error{failure} if dnn_problem() (attention.h) is
/// not empty.
const Dnn& dnn();

/// Returns the version; 91900 is 9.19.0.
std::int64_t dnn_version();

/// Throws Error{failure}, with cuDNN's reason, unless `status` is success.
void check(cudnnStatus_t status, const char* call);

/// A cuDNN object.
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
  /// Returns the attribute's number of elements, and writes at most `most` of them to `values`.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t most, void* values) const;
  void finalize();

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace concertina::cuda
