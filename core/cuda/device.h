// CUDA devices that this process can use.
// Invariant: nothing here throws or needs a driver. Without CUDA in the build (no_cuda.cc), or
// without a driver, there are no devices.
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

/// Returns the number of usable devices.
int device_count();
/// Describes the devices or their absence: "built without CUDA", "CUDA runtime 13.0: no driver".
std::string status();
/// Returns one device without its free memory, which would require a context.
std::optional<Device> find_device(int index);
/// Returns all devices. Reading their free memory creates a context on each device.
std::vector<Device> devices();

}  // namespace concertina::cuda
