#include "streams.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  std::unique_ptr<CUgraph_st> capture;
  std::thread::id capturer;
  bool spoiled = false;
};

namespace concertina::emulation {
namespace {

thread_local cudaStream_t captured = nullptr;  // of this thread
thread_local int calls = 0;
std::atomic<int> graphs = 0;

cudaError_t spoil(cudaStream_t stream, cudaError_t error) {
  stream->spoiled = true;
  return error;
}

}  // namespace

cudaError_t submit(cudaStream_t stream, std::function<void()> work) {
  ++calls;
  if (stream == nullptr) {  // other streams would depend on the legacy stream
    if (captured != nullptr) return spoil(captured, cudaErrorStreamCaptureImplicit);
    work();
  } else if (stream->capture == nullptr) {
    work();
  } else if (stream->capturer != std::this_thread::get_id()) {
    return spoil(stream, cudaErrorStreamCaptureWrongThread);
  } else if (stream->spoiled) {
    return cudaErrorStreamCaptureInvalidated;
  } else {
    stream->capture->nodes.push_back(std::move(work));
  }
  return cudaSuccess;
}

cudaError_t outside_captures() {
  return captured == nullptr ? cudaSuccess : spoil(captured, cudaErrorStreamCaptureUnsupported);
}

bool capturing(cudaStream_t stream) {
  return stream != nullptr && stream->capture != nullptr;
}

int calls_made() {
  return calls;
}

int graphs_alive() {
  return graphs;
}

}  // namespace concertina::emulation

using namespace concertina::emulation;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (capturing(stream)) return cudaErrorStreamCaptureUnsupported;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || capturing(stream) || captured != nullptr)
    return cudaErrorStreamCaptureUnsupported;
  if (mode != cudaStreamCaptureModeThreadLocal)
    return cudaErrorInvalidValue;  // others are not supported
  stream->capture = std::make_unique<CUgraph_st>();
  stream->capturer = std::this_thread::get_id();
  stream->spoiled = false;
  captured = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!capturing(stream)) return cudaErrorInvalidValue;
  if (captured != stream) return cudaErrorStreamCaptureWrongThread;
  captured = nullptr;
  const auto made = std::exchange(stream->capture, nullptr).release();
  if (stream->spoiled) {
    delete made;
    return cudaErrorStreamCaptureInvalidated;
  }
  *graph = made;
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return cudaErrorInvalidValue;  // only counting is supported
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = outside_captures(); error != cudaSuccess) return error;
  *made = new CUgraphExec_st{*graph};
  ++graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return submit(stream, [&nodes = graph->graph.nodes] {
    for (const auto& node : nodes) node();
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  --graphs;
  return cudaSuccess;
}

}  // extern "C"
