#include "core/cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

namespace concertina::cuda {
namespace {

/// Returns "13.0" for 13000.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int count_devices(cudaError_t& error) {
  // Streams that share a hardware queue wait for each other. With the default of 8 queues, a
  // message that waits for its peer may block kernels. CUDA reads this variable when it starts.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  error = cudaGetDeviceCount(&count);
  return error == cudaSuccess ? count : 0;
}

}  // namespace

int device_count() {
  cudaError_t error = cudaSuccess;
  return count_devices(error);
}

std::string status() {
  int runtime = 0, driver = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  (void)cudaDriverGetVersion(&driver);  // stays 0 if there is no driver
  cudaError_t error = cudaSuccess;
  const int count = count_devices(error);
  std::string text = fmt::format("CUDA runtime {}: ", version_text(runtime));
  if (driver == 0) return text + "no driver";
  text += fmt::format("driver for CUDA {}, ", version_text(driver));
  if (count > 0) return text + fmt::format("{} device{}", count, count == 1 ? "" : "s");
  return text + (error == cudaSuccess ? "no device" : cudaGetErrorString(error));
}

std::optional<Device> find_device(int index) {
  cudaError_t error = cudaSuccess;
  cudaDeviceProp properties{};
  if (index < 0 || index >= count_devices(error) ||
      cudaGetDeviceProperties(&properties, index) != cudaSuccess)
    return {};
  return Device{
      index, properties.name, properties.major, properties.minor, properties.totalGlobalMem, 0};
}

std::vector<Device> devices() {
  std::vector<Device> result;
  cudaError_t error = cudaSuccess;
  const int count = count_devices(error);
  int current = 0;
  if (count > 0) (void)cudaGetDevice(&current);
  for (int index = 0; index < count; ++index) {
    std::optional<Device> device = find_device(index);
    if (!device) continue;
    if (cudaSetDevice(index) == cudaSuccess)
      (void)cudaMemGetInfo(&device->free_bytes, &device->total_bytes);
    result.push_back(std::move(*device));
  }
  if (count > 0) (void)cudaSetDevice(current);
  return result;
}

}  // namespace concertina::cuda
