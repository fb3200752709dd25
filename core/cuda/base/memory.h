// Device memory: one block for an arena, and copies to and from it.
// Invariant: copy() is ordered with the kernels' stream. Each Staging copies on separate streams,
// one per direction (a GPU has a copy engine for each), so that neither kernels nor the other
// direction wait.
#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/base/handles.h"
#include "core/memory.h"

namespace concertina::cuda {

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(cudaStream_t stream) : stream_(stream) {}
  /// Calls cudaMalloc once. Errors name the block and the numbers of bytes needed and free.
  void* allocate(std::size_t bytes, std::string_view name) override;
  void release(void* block, std::size_t bytes) noexcept override;
  void copy(const void* from, void* to, std::size_t bytes) override;
  /// Returns the device's pool.
  std::optional<Pool> pool() const override;
  /// Returns pinned staging memory.
  std::unique_ptr<Staging> make_staging(std::size_t bytes) override;
  /// Returns the stream of the kernels.
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
  Stream to_host_, to_device_;
};

}  // namespace concertina::cuda
