// The functions of the CUDA runtime that core/cuda calls, over host memory (streams and graphs:
// streams.cc, events: device_clock.cc). Device memory is poisoned, and accessible only to the
// device's work.
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "block.h"
#include "streams.h"

namespace {

/// The size of the device's memory: CONCERTINA_EMULATED_BYTES, or 4 GiB.
std::size_t total_bytes() {
  const char* text = std::getenv("CONCERTINA_EMULATED_BYTES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::size_t{4} << 30;
}
std::size_t used_bytes = 0;

std::mutex mutex;
std::map<const void*, std::size_t> blocks;  // blocks of device memory and their sizes
int working = 0;                            // kernels and copies in progress

std::size_t pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return std::max<std::size_t>(1, (bytes + kPage - 1) / kPage) * kPage;
}
int capability_major = 9, capability_minor = 0;

bool on_device(const void* memory) {
  const std::lock_guard lock(mutex);
  const auto after = blocks.upper_bound(memory);
  if (after == blocks.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return static_cast<const std::byte*>(memory) <
         static_cast<const std::byte*>(start) + pages(bytes);
}

void protect(int protection) {
  for (const auto& [start, bytes] : blocks)
    if (mprotect(const_cast<void*>(start), pages(bytes), protection) != 0) std::abort();
}

}  // namespace

namespace concertina::emulation {

DeviceAtWork::DeviceAtWork() {
  const std::lock_guard lock(mutex);
  if (working++ == 0) protect(PROT_READ | PROT_WRITE);
}
DeviceAtWork::~DeviceAtWork() {
  const std::lock_guard lock(mutex);
  if (--working == 0) protect(PROT_NONE);
}

void set_compute_capability(int major, int minor) {
  capability_major = major, capability_minor = minor;
}

}  // namespace concertina::emulation

using concertina::emulation::DeviceAtWork;
using concertina::emulation::outside_captures;
using concertina::emulation::submit;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t error = outside_captures(); error != cudaSuccess) return error;
  const std::lock_guard lock(mutex);
  if (bytes > total_bytes() - used_bytes) return cudaErrorMemoryAllocation;
  *memory = mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*memory == MAP_FAILED) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xFF, pages(bytes));
  blocks[*memory] = bytes;
  used_bytes += bytes;
  if (working == 0) protect(PROT_NONE);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = outside_captures(); error != cudaSuccess) return error;
  const std::lock_guard lock(mutex);
  if (const auto block = blocks.find(memory); block != blocks.end()) {
    munmap(memory, pages(block->second));
    used_bytes -= block->second;
    blocks.erase(block);
  }
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (const cudaError_t error = outside_captures(); error != cudaSuccess) return error;
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t error = outside_captures(); error != cudaSuccess) return error;
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind != cudaMemcpyDefault) return cudaErrorInvalidValue;
  return submit(stream, [=] {
    const DeviceAtWork at_work;
    std::memcpy(to, from, bytes);
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return submit(stream, [=] {
    const DeviceAtWork at_work;
    const std::lock_guard lock(mutex);
    const auto block = blocks.find(memory);
    if (value == 0 && block != blocks.end() && bytes == block->second)
      madvise(memory, pages(bytes), MADV_DONTNEED);  // zeros again, and fast to protect
    else
      std::memset(memory, value, bytes);
  });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  attributes->type = on_device(memory) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = total_bytes();
  *free = *total - used_bytes;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->major = capability_major;
  properties->minor = capability_minor;
  properties->totalGlobalMem = total_bytes();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:emu");
  return cudaSuccess;
}

}  // extern "C"
