// The functions of the CUDA runtime that core/cuda calls, over host memory. All work is done when
// the call returns. Device memory is poisoned, and known by its address.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

namespace {

constexpr std::size_t kMemory = std::size_t{1} << 30;
std::map<const void*, std::size_t> device_blocks;

bool on_device(const void* memory) {
  const auto after = device_blocks.upper_bound(memory);
  if (after == device_blocks.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return static_cast<const std::byte*>(memory) < static_cast<const std::byte*>(start) + bytes;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (bytes > kMemory) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  std::memset(*memory, 0xFF, bytes);
  device_blocks[*memory] = bytes + 1;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  device_blocks.erase(memory);
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
  *free = *total = kMemory;
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
  properties->totalGlobalMem = kMemory;
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
