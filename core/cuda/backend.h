// The CUDA backend: kernels of its own, products by cuBLASLt.
// Invariant: a backend is used by the thread that made it, and all its work is on one stream; no
// kernel adds by atomics, so that the bits depend on shapes, device and cuBLASLt's version alone.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/backend.h"

namespace concertina::cuda {

/// A backend whose buffers are in a device's memory.
class DeviceBackend : public Backend {
 public:
  /// A block of device memory. Its error says what `name` wanted and what is free.
  virtual void* allocate(std::size_t bytes, std::string_view name) = 0;
  virtual void release(void* block) = 0;
  /// In any direction, after all work issued so far; complete on return if one side is host
  /// memory.
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
};

struct BackendOptions {
  int device = 0;
  bool tf32 = false;  // fp32 products on tensor cores, their operands cut to 10 bits
};

/// Throws Error{bad_input} where the build has no CUDA, or there is no such device, no cuBLASLt, or
/// the device is older than compute capability 8.0.
std::unique_ptr<DeviceBackend> make_cuda_backend(const BackendOptions& options);

}  // namespace concertina::cuda
