#include "core/cuda/base/memory.h"

#include <algorithm>
#include <array>

#include "core/cuda/base/check.h"
#include "core/cuda/base/sizes.h"
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
  throw_failure(fmt::format("{}: needs {} bytes of device memory, but only {} of {} are free", name,
                            bytes, free, total),
                fmt::format("GPU {}", device),
                "fewer samples per microbatch, more stages, or a GPU that is not used by others");
}

/// mark() records a point in the kernels' stream that the copy stream waits for: fetch()
/// reads what earlier kernels wrote, and deliver() writes after earlier kernels have read. No
/// stream waits for the copy: the host polls idle() before it issues kernels that depend on it.
class DeviceStaging final : public Staging {
 public:
  DeviceStaging(std::size_t bytes, cudaStream_t kernels, cudaStream_t to_host,
                cudaStream_t to_device)
      : bytes_(bytes),
        memory_(std::max<std::size_t>(bytes, 1)),
        kernels_(kernels),
        to_host_(to_host),
        to_device_(to_device) {}

  std::span<std::byte> host() override { return {memory_.data(), bytes_}; }
  void mark() override { marked_.record(kernels_); }
  void fetch(const void* block) override { copy(block, memory_.data(), to_host_); }
  void deliver(void* block) override { copy(memory_.data(), block, to_device_); }
  bool idle() override { return ended_.passed(); }

 private:
  void copy(const void* from, void* to, cudaStream_t stream) {
    marked_.hold(stream);
    if (bytes_ > 0)
      check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    ended_.record(stream);
  }

  std::size_t bytes_;
  Pinned<std::byte> memory_;
  cudaStream_t kernels_, to_host_, to_device_;
  Marker marked_, ended_;
};

}  // namespace

std::unique_ptr<Staging> DeviceMemory::make_staging(std::size_t bytes) {
  return std::make_unique<DeviceStaging>(bytes, stream_, to_host_, to_device_);
}

void* DeviceMemory::allocate(std::size_t bytes, std::string_view name) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // reported here
    out_of_memory(bytes, name);
  }
  check(error, "cudaMalloc");
  check(cudaMemsetAsync(block, 0, bytes, stream_), "cudaMemsetAsync");
  return block;
}

void DeviceMemory::release(void* block, std::size_t) noexcept {
  cudaError_t error = cudaFree(block);
  if (error == cudaErrorCudartUnloading) error = cudaSuccess;  // the driver frees it at exit
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
  // By bus ID, because processes may see different devices as number 0.
  return Pool{fmt::format("GPU {}", bus.data()), free, kUnplannedBytes};
}

void DeviceMemory::copy(const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  if (!on_device(from) || !on_device(to))
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

}  // namespace concertina::cuda
