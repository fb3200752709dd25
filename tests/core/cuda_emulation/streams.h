// The emulated device's streams. Work is done when its call returns, unless its stream is being
// captured; then it is recorded with its arguments, and done when the graph is launched. As on a
// GPU, what a capture does not allow is an error and invalidates the capture.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace concertina::emulation {

cudaError_t submit(cudaStream_t stream, std::function<void()> work);
/// For calls that this thread may not make during a capture: returns an error if it does.
cudaError_t outside_captures();
bool capturing(cudaStream_t stream);

/// Counts this thread's calls that add work to streams; a graph launch counts as one.
int calls_made();
/// Counts the graphs of all threads that have not been destroyed.
int graphs_alive();

}  // namespace concertina::emulation
