// The emulated device's streams. Work is done when its call returns, unless its stream is being
// captured: then it is kept, with its arguments as they are, and done when the graph is launched.
// As on a GPU, what a capture does not allow is an error, and spoils the capture.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace concertina::emulation {

cudaError_t submit(cudaStream_t stream, std::function<void()> work);
/// For calls that this thread may not make while it captures: an error if it does.
cudaError_t outside_captures();
bool capturing(cudaStream_t stream);

/// Calls of this thread that put work into streams; a graph is one.
int calls_made();
/// Graphs that have not been destroyed, of all threads.
int graphs_alive();

}  // namespace concertina::emulation
