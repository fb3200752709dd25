// Failed CUDA calls become Error: the call, the device, what CUDA says, what to do.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace concertina::cuda {

/// Throws a failure unless `error` is cudaSuccess. `call` names the function or the kernel.
void check(cudaError_t error, const char* call);

/// Throws if a sum over rows wants more than the scratch that it is given.
void check_scratch(std::size_t wanted, std::size_t given, const char* kernel);

/// For destructors: logs what failed, unless an exception brings that already, and goes on.
void log_failure(cudaError_t error, const char* call) noexcept;

}  // namespace concertina::cuda
