// Owners of CUDA resources: streams, events, markers, pinned host memory.
// Invariant: each owner frees its resource. A failure to free is logged, not thrown.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/cuda/base/check.h"

namespace concertina::cuda {

/// A stream that does not wait for the legacy default stream.
class Stream {
 public:
  Stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Stream() { log_failure(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream, and the time at which the stream reached it. Other streams can wait for it,
/// and the host can wait for it and test it.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
  }
  ~Event() { log_failure(cudaEventDestroy(event_), "cudaEventDestroy"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  /// Makes work issued to `stream` from now on wait for it.
  void hold(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  bool passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  /// Requires that the streams have reached both events.
  double seconds_since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// An event without a time.
struct Marker : Event {
  Marker() : Event(cudaEventDisableTiming) {}
};

/// Host memory that the device accesses at the same address.
template <class T>
class Pinned {
 public:
  explicit Pinned(std::size_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
    data_ = static_cast<T*>(memory);
  }
  ~Pinned() { log_failure(cudaFreeHost(data_), "cudaFreeHost"); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() const { return data_; }
  std::size_t count() const { return count_; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

}  // namespace concertina::cuda
