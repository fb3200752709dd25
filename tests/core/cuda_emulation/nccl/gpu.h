// For tests: gives each rank its own emulated GPU memory, and lets links fail.
#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/base/memory.h"

namespace concertina {

namespace emulation {
/// Makes NCCL report on every communicator that a remote process is gone.
void break_links(bool broken);
}  // namespace emulation

namespace test {

/// Selects the thread's GPU before anything is created on it.
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
