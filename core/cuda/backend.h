// The CUDA backend: kernels of its own, products by cuBLASLt, attention by cuDNN where it can be.
// Invariant: a backend is used by the thread that made it, and all its work is on one stream; no
// kernel adds by atomics, so that the bits depend on shapes, device and these libraries' versions
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/backend.h"

namespace concertina::cuda {

/// Whose kernels do attention: cuDNN's where it can be used and has one that fits, else our own
/// (automatic); our own; cuDNN's, or it is an error.
enum class AttentionBy : std::uint8_t { automatic, own, cudnn };
inline constexpr std::array<std::string_view, 3> kAttentionNames{"auto", "own", "cudnn"};

struct BackendOptions {
  int device = 0;
  AttentionBy attention = AttentionBy::automatic;
  /// Most passes of units that it keeps as CUDA graphs; 0: none. A kernel in one takes some 10 KB
  /// of the device (NVIDIA/cccl, pull request 3768), part of kUnplannedBytes.
  std::size_t graphs = 1024;
};

/// The version of cuBLASLt, or why it cannot be used; empty where the build has no CUDA.
std::string products_status();
/// The same of cuDNN.
std::string dnn_status();
/// Why attention on this device cannot be cuDNN's; empty where it can.
std::string dnn_refusal(int device);

/// Knows what operators take; all else is an error. Needs no CUDA in the build. What `automatic`
/// comes to is known where there is a GPU; elsewhere it takes what the greedier of both does.
std::unique_ptr<Backend> make_sizing_backend(AttentionBy attention = AttentionBy::automatic);

/// Throws Error{bad_input} where the build has no CUDA, or there is no such device, no cuBLASLt, no
/// cuDNN that is asked for, or the device is older than compute capability 8.0.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace concertina::cuda
