// The CUDA backend: kernels of its own, products by cuBLASLt.
// Invariant: a backend is used by the thread that made it, and all its work is on one stream; no
// kernel adds by atomics, so that the bits depend on shapes, device and cuBLASLt's version alone.
#pragma once

#include <memory>
#include <string>

#include "core/backend.h"

namespace concertina::cuda {

struct BackendOptions {
  int device = 0;
  /// Most passes of units that it keeps as CUDA graphs; 0: none. A kernel in one takes some 10 KB
  /// of the device (NVIDIA/cccl, pull request 3768), part of kUnplannedBytes.
  std::size_t graphs = 1024;
};

/// The version of cuBLASLt, or why it cannot be used; empty where the build has no CUDA.
std::string products_status();

/// Knows what operators take; all else is an error. Needs no CUDA in the build.
std::unique_ptr<Backend> make_sizing_backend();

/// Throws Error{bad_input} where the build has no CUDA, or there is no such device, no cuBLASLt, or
/// the device is older than compute capability 8.0.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace concertina::cuda
