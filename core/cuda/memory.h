// Device memory: one block for an arena, and copies from and to it.
#pragma once

#include <cuda_runtime_api.h>

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
  /// The device; as much of it as is plannable().
  std::optional<Pool> pool() const override;

 private:
  cudaStream_t stream_;
};

}  // namespace concertina::cuda
