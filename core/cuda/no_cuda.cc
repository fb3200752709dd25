// Linked instead of the other sources of this folder if the build has no CUDA.
#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"

namespace concertina::cuda {

int device_count() {
  return 0;
}
std::string status() {
  return "built without CUDA";
}
std::optional<Device> find_device(int) {
  return {};
}
std::vector<Device> devices() {
  return {};
}
std::string products_status() {
  return {};
}
std::string dnn_status() {
  return {};
}
std::string dnn_refusal(int) {
  return status();
}
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&) {
  throw_input("there is no GPU backend: concertina was built without CUDA", "run.device",
              "run.device = \"cpu\", or a build with nvcc (-Dcuda=enabled)");
}

}  // namespace concertina::cuda
