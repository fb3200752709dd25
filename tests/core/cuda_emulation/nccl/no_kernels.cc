// Test kernels run on the host: streams here have only copies and messages.
#include "core/cuda/backend.h"
#include "core/error.h"

namespace concertina::cuda {

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&) {
  throw_failure("the emulated streams run no kernels", "cuda_emulation/nccl",
                "a backend on the host");
}

}  // namespace concertina::cuda
