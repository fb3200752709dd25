// The CUDA backend: our kernels, products with cuBLASLt, attention with cuDNN where possible.
// Invariants: a backend is used by the thread that created it, and all its work is on one stream.
// No kernel uses atomic additions, so bits depend only on shapes, the device and the versions of
// these libraries.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/backend.h"

namespace concertina::cuda {

/// Whose kernels compute attention: cuDNN's if it is usable and supports the shape, otherwise ours
/// (automatic); ours; or cuDNN's, with an error if they cannot be used.
enum class AttentionBy : std::uint8_t { automatic, own, cudnn };
inline constexpr std::array<std::string_view, 3> kAttentionNames{"auto", "own", "cudnn"};

struct BackendOptions {
  int device = 0;
  AttentionBy attention = AttentionBy::automatic;
  /// Maximum number of passes kept as CUDA graphs; 0 disables them. Each kernel in a graph takes
  /// about 10 KB of device memory (NVIDIA/cccl, pull request 3768), part of kUnplannedBytes.
  std::size_t graphs = 1024;
};

/// Returns the version of cuBLASLt, or why it cannot be used; empty if the build has no CUDA.
std::string products_status();
/// Likewise for cuDNN.
std::string dnn_status();
/// Returns why this device cannot use cuDNN's attention; empty if it can.
std::string dnn_refusal(int device);

/// Creates a backend that only computes the operators' memory; everything else is an error. Needs
/// no CUDA in the build. `automatic` depends on the GPU; without one, the larger size is used.
std::unique_ptr<Backend> make_sizing_backend(AttentionBy attention = AttentionBy::automatic);

/// Throws Error{bad_input} if the build has no CUDA, if the device, cuBLASLt or a requested cuDNN
/// is missing, or if the device's compute capability is below 8.0.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace concertina::cuda
