// A point in a stream that other streams wait for, and that the host tests; without a time.
#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/check.h"

namespace concertina::cuda {

class Marker {
 public:
  Marker() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~Marker() { log_failure(cudaEventDestroy(event_), "cudaEventDestroy"); }
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  /// What is issued to `stream` from now on waits for it.
  void hold(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  bool passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace concertina::cuda
