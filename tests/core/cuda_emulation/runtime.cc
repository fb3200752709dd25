// The functions of the CUDA runtime that core/cuda calls, over host memory. All work is done when
// the call returns. Device memory is poisoned, and known by its address.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

namespace {

/// Of the device: CONCERTINA_EMULATED_BYTES, or 1 GiB.
std::size_t total_bytes() {
  const char* text = std::getenv("CONCERTINA_EMULATED_BYTES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::size_t{1} << 30;
}
std::size_t used_bytes = 0;

std::mutex blocks_mutex;
std::map<const void*, std::size_t> device_blocks;

bool on_device(const void* memory) {
  const std::lock_guard lock(blocks_mutex);
  const auto after = device_blocks.upper_bound(memory);
  if (after == device_blocks.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return static_cast<const std::byte*>(memory) <
         static_cast<const std::byte*>(start) + std::max<std::size_t>(bytes, 1);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::lock_guard lock(blocks_mutex);
  if (bytes > total_bytes() - used_bytes) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  device_blocks[*memory] = bytes;
  used_bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(blocks_mutex);
  if (const auto block = device_blocks.find(memory); block != device_blocks.end()) {
    used_bytes -= block->second;
    device_blocks.erase(block);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  if (kind != cudaMemcpyDefault) return cudaErrorInvalidValue;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
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
  properties->major = 9;
  properties->totalGlobalMem = total_bytes();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:emu");
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "emulated error";
}
const char* cudaGetErrorName(cudaError_t) {
  return "emulated";
}

}  // extern "C"
