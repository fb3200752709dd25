// Converts failed CUDA calls to Error: the call, the device, CUDA's message, and a fix.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace concertina::cuda {

/// Throws Error{failure} unless `error` is cudaSuccess. `call` names the function or the kernel.
void check(cudaError_t error, const char* call);

/// Throws if a sum over rows needs more scratch than it was given.
void check_scratch(std::size_t wanted, std::size_t given, const char* kernel);

/// For destructors: logs the failure, unless an exception is already being propagated.
void log_failure(cudaError_t error, const char* call) noexcept;

}  // namespace concertina::cuda
