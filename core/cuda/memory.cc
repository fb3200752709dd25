#include "core/cuda/memory.h"

#include <array>

#include "core/cuda/check.h"
#include "core/cuda/device.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

bool on_device(const void* memory) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice;
}

[[noreturn]] void out_of_memory(std::size_t bytes, std::string_view name) {
  std::size_t free = 0, total = 0;
  int device = -1;
  (void)cudaGetDevice(&device);
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  throw_failure(fmt::format("{}: {} bytes of device memory wanted, {} of {} are free", name, bytes,
                            free, total),
                fmt::format("GPU {}", device),
                "fewer samples a microbatch, more stages, or a GPU that nobody else uses");
}

}  // namespace

void* DeviceMemory::allocate(std::size_t bytes, std::string_view name) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // it is reported here
    out_of_memory(bytes, name);
  }
  check(error, "cudaMalloc");
  check(cudaMemsetAsync(block, 0, bytes, stream_), "cudaMemsetAsync");
  return block;
}

void DeviceMemory::release(void* block, std::size_t) noexcept {
  cudaError_t error = cudaFree(block);
  if (error == cudaErrorCudartUnloading) error = cudaSuccess;  // the driver frees it with us
  if (error != cudaSuccess) (void)cudaGetLastError();
  log_failure(error, "cudaFree");
}

std::optional<Memory::Pool> DeviceMemory::pool() const {
  int device = -1;
  std::size_t free = 0, total = 0;
  std::array<char, 32> bus{};
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device),
        "cudaDeviceGetPCIBusId");
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  // By its place on the bus: processes may see different devices as number 0.
  return Pool{fmt::format("GPU {}", bus.data()), plannable(free)};
}

void DeviceMemory::copy(const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  if (!on_device(from) || !on_device(to))
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

}  // namespace concertina::cuda
