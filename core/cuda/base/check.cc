#include "core/cuda/base/check.h"

#include <exception>

#include "core/error.h"
#include "core/log.h"

namespace concertina::cuda {
namespace {

const char* advice(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "fewer samples per microbatch, more stages, or a GPU that is not used by others";
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return "`concertina doctor` shows the GPUs and the driver that this process can access";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "a GPU of compute capability 8.0 or later, and a driver for this CUDA version";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
      return "this is a bug in concertina: `compute-sanitizer concertina ...` identifies the "
             "kernel";
    default:
      return "an earlier call may have failed: CUDA_LAUNCH_BLOCKING=1 shows the first one";
  }
}

int current_device() {
  int device = -1;
  (void)cudaGetDevice(&device);
  return device;
}

}  // namespace

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // so that the next call does not report it again
  throw_failure(
      fmt::format("{} failed: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error)),
      fmt::format("GPU {}", current_device()), advice(error));
}

void check_scratch(std::size_t wanted, std::size_t given, const char* kernel) {
  CONCERTINA_CHECK(wanted <= given, "{} needs {} bytes of scratch, but has only {}", kernel, wanted,
                   given);
}

void log_failure(cudaError_t error, const char* call) noexcept {
  // During unwinding, further errors from a lost device are not reported.
  if (error != cudaSuccess && std::uncaught_exceptions() == 0)
    log::error("{} failed: {}, GPU {}", call, cudaGetErrorString(error), current_device());
}

}  // namespace concertina::cuda
