// Runs CUDA kernels on the host, with a fiber for each thread of a block, to compare them with the
// oracle on machines without a GPU. It emulates barriers, exchanges between the lanes of a warp,
// and shared memory, but not time, caches or the order of memory accesses.
// Invariants: threads switch only at a barrier or an exchange; a barrier that some threads miss, or
// lanes that meet in different exchanges, end the test. Each host thread has its own device, so
// ranks can be threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

namespace concertina::emulation {

/// Calls `kernel` for every thread of every block.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// A warp runs until all its lanes wait for others. Warps run from the first to the last, or in
/// reverse; results that differ indicate a missing barrier.
void reverse_threads(bool reversed);

/// Device memory is accessible only while this object exists, that is, while the device works. Host
/// code that accesses it at another time ends the process.
class DeviceAtWork {
 public:
  DeviceAtWork();
  ~DeviceAtWork();
  DeviceAtWork(const DeviceAtWork&) = delete;
  DeviceAtWork& operator=(const DeviceAtWork&) = delete;
};

void wait_for_block();
/// Returns the values given by each lane of the warp, `bytes` (at most 64) each, one after another.
const std::byte* exchange(const char* operation, const void* mine, std::size_t bytes);
unsigned lane();

}  // namespace concertina::emulation
