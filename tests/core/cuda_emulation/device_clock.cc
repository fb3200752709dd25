#include "device_clock.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/clock.h"
#include "streams.h"

namespace concertina::emulation {
namespace {

thread_local double kernel_seconds = -1;
thread_local double host = 0, device = 0;  // the test's time, and the end of the last kernel
thread_local int issued = 0, events = 0;

}  // namespace

void kernels_take(double seconds) {
  kernel_seconds = seconds;
  host = device = 0;
  issued = 0;
}

void host_passes(double seconds) {
  host += seconds;
}

int kernels_issued() {
  return issued;
}

int events_made() {
  return events;
}

void kernel_issued() {
  ++issued;
  device = std::max(device, host) + std::max(0.0, kernel_seconds);
}

}  // namespace concertina::emulation

struct CUevent_st {
  double at = -1;
  bool captured = false;  // last recorded during a capture of its stream
};

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  if (flags == cudaEventDefault) ++concertina::emulation::events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  using namespace concertina::emulation;
  event->captured = capturing(stream);
  if (event->captured) return cudaSuccess;
  event->at = kernel_seconds < 0 ? concertina::now() : std::max(device, host);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  using concertina::emulation::host;
  if (event->captured) return cudaErrorCapturedEvent;
  host = std::max(host, event->at);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->captured) return cudaErrorCapturedEvent;
  return cudaSuccess;  // the work was done when its call returned
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->captured || end->captured) return cudaErrorCapturedEvent;
  if (start->at < 0 || end->at < 0) return cudaErrorInvalidResourceHandle;
  *milliseconds = static_cast<float>((end->at - start->at) * 1e3);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  using namespace concertina::emulation;
  if (capturing(stream)) return outside_captures();
  host = std::max(host, device);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  using namespace concertina::emulation;
  // A dependency across the boundary of a capture.
  if (capturing(stream) || event->captured) return cudaErrorStreamCaptureIsolation;
  return cudaSuccess;
}

}  // extern "C"
