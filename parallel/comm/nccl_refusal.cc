// Whether NCCL can be used: every rank needs the library and a GPU that no other rank uses.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "core/cuda/base/memory.h"
#include "core/host_name.h"
#include "core/index.h"
#include "parallel/comm/nccl_communicator.h"
#include "parallel/comm/nccl_library.h"

namespace concertina {
namespace {

/// Sent as raw bytes.
struct Place {
  std::array<char, 16> gpu{};  // UUID
  std::array<char, 64> host{};
  std::array<char, 256> problem{};
  int device = 0;
};

template <std::size_t N>
void put(std::array<char, N>& to, const std::string& text) {
  text.copy(to.data(), N - 1);
}

Place here(Memory& memory) {
  Place place;
  put(place.host, host_name());
  cudaDeviceProp properties{};
  if (dynamic_cast<cuda::DeviceMemory*>(&memory) == nullptr) {
    put(place.problem, "tensors are not in GPU memory");
  } else if (cudaGetDevice(&place.device) != cudaSuccess ||
             cudaGetDeviceProperties(&properties, place.device) != cudaSuccess) {
    put(place.problem, "CUDA does not report which GPU is in use");
  } else {
    std::memcpy(place.gpu.data(), properties.uuid.bytes, place.gpu.size());
    put(place.problem, nccl_problem());
  }
  return place;
}

}  // namespace

std::string nccl_refusal(Communicator& control, Memory& memory) {
  std::vector<Place> places(at(control.size()));
  std::vector<Bytes> parts;
  for (Place& one : places) parts.push_back(std::as_writable_bytes(std::span(&one, 1)));
  const Place mine = here(memory);
  control.all_gather(std::as_bytes(std::span(&mine, 1)), parts).wait();
  for (std::size_t b = 0; b < places.size(); ++b) {
    if (places[b].problem[0] != '\0')
      return fmt::format("rank {} on {}: {}", b, places[b].host.data(), places[b].problem.data());
    for (std::size_t a = 0; a < b; ++a)
      if (places[a].gpu == places[b].gpu)
        return fmt::format("ranks {} and {} share GPU {} of {}, which NCCL does not support", a, b,
                           places[b].device, places[b].host.data());
  }
  return {};
}

}  // namespace concertina
