// Device memory: one block for an arena, and copies from and to it.
// Invariant: copy() is in the order of the kernels' stream. Copies of a Staging are on streams of
// their own, one a direction (a GPU has a copy engine for each), so that neither kernels nor the
// other direction wait for them.
#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/base/handles.h"
#include "core/memory.h"

namespace concertina::cuda {

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(cudaStream_t stream) : stream_(stream) {}
  /// One cudaMalloc. Its error says what the block is for, how many bytes were wanted, and how many
  /// are free.
  void* allocate(std::size_t bytes, std::string_view name) override;
  void release(void* block, std::size_t bytes) noexcept override;
  void copy(const void* from, void* to, std::size_t bytes) override;
  /// The device.
  std::optional<Pool> pool() const override;
  /// Pinned.
  std::unique_ptr<Staging> make_staging(std::size_t bytes) override;
  /// The stream of the kernels.
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
  Stream to_host_, to_device_;
};

}  // namespace concertina::cuda
