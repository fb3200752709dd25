// For tests: a rank's memory on an emulated GPU of its own, and links that fail.
#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/base/memory.h"

namespace concertina {

namespace emulation {
/// NCCL reports that a remote process is gone, on every communicator.
void break_links(bool broken);
}  // namespace emulation

namespace test {

/// Makes a GPU the thread's, before anything is made on it.
struct OnDevice {
  explicit OnDevice(int device) { cuda::check(cudaSetDevice(device), "cudaSetDevice"); }
};

struct Gpu : OnDevice {
  explicit Gpu(int device) : OnDevice(device) {}
  cuda::Stream kernels;
  cuda::DeviceMemory memory{kernels};
};

}  // namespace test
}  // namespace concertina
