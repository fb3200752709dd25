// CUDA devices that this process can use.
// Invariant: nothing here throws or needs a driver; without CUDA in the build (no_cuda.cc) or
// without a driver there are simply no devices.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace concertina::cuda {

struct Device {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  std::size_t total_bytes = 0, free_bytes = 0;
};

/// Devices that can be used.
int device_count();
/// Why there is none, or what is there: "built without CUDA", "CUDA runtime 13.0: no driver".
std::string status();
/// One of them, without its free memory: makes no context.
std::optional<Device> find_device(int index);
/// Reading the free memory makes a context on each device.
std::vector<Device> devices();

}  // namespace concertina::cuda
