// Runs CUDA kernels on the host, a fiber for each thread of a block, so that they can be held
// against the oracle where there is no GPU. What it knows: barriers, exchanges between the lanes
// of a warp, shared memory. What it does not: time, caches, the order of memory accesses.
// Invariants: threads change only at a barrier or an exchange; one that not all threads reach, or
// lanes that meet in different exchanges, end the test. Each host thread has a device of its own,
// so that ranks may be threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

namespace concertina::emulation {

/// Calls `kernel` for every thread of every block.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// A warp runs until all its lanes wait for others: the first one first, or the last one. Results
/// that differ show a missing barrier.
void reverse_threads(bool reversed);

/// While the device works, and only then, device memory can be touched: host code that does so at
/// another time ends the process.
class DeviceAtWork {
 public:
  DeviceAtWork();
  ~DeviceAtWork();
  DeviceAtWork(const DeviceAtWork&) = delete;
  DeviceAtWork& operator=(const DeviceAtWork&) = delete;
};

void wait_for_block();
/// What each of the warp's lanes gave, `bytes` (64 at most) each, one after the other.
const std::byte* exchange(const char* operation, const void* mine, std::size_t bytes);
unsigned lane();

}  // namespace concertina::emulation
