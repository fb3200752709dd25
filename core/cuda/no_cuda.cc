// Linked in place of device.cc where the build has no CUDA.
#include "core/cuda/device.h"

namespace concertina::cuda {

bool available() {
  return false;
}
std::string status() {
  return "built without CUDA";
}
std::vector<Device> devices() {
  return {};
}

}  // namespace concertina::cuda
