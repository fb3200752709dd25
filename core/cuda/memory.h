// Device memory: one block for an arena, and copies from and to it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

namespace concertina::cuda {

/// One cudaMalloc. Its error says what the block is for, how many bytes were wanted, and how many
/// are free.
void* allocate(std::size_t bytes, std::string_view name);
void release(void* block) noexcept;

/// In any direction, in the stream's order; complete on return if one side is host memory.
void copy(const void* from, void* to, std::size_t bytes, cudaStream_t stream);

}  // namespace concertina::cuda
