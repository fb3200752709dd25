#include "core/cuda/pass_graphs.h"

#include <xxhash.h>

#include <utility>

#include "core/error.h"

namespace concertina::cuda {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const {
    log_failure(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

/// Until end(), records what this thread issues to a stream instead of executing it. Thread-local,
/// so that other ranks that are threads of the process are not affected.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    (void)finish();  // discard the recording, because an exception is being propagated
    (void)cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Graph end() {
    auto [graph, error] = finish();
    check(error, "cudaStreamEndCapture");
    return std::move(graph);
  }

 private:
  std::pair<Graph, cudaError_t> finish() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph);
    return {Graph(graph), error};
  }

  cudaStream_t stream_;
};

}  // namespace

void PassGraphs::run(const RepeatedPass& pass, const std::function<void()>& issue) {
  const auto found = recordings_.find(pass.key);
  if (found == recordings_.end()) {
    issue();
    ++counts_.issued;
    if (recordings_.size() < most_)
      recordings_.try_emplace(std::vector<std::uint64_t>(pass.key.begin(), pass.key.end()));
    return;
  }
  try {
    if (!found->second.made) record(found->second, pass, issue);
    launch(found->second, pass.random);
  } catch (const Error& error) {
    throw_failure(
        fmt::format("CUDA graph for {} of {} failed: {}", pass.pass, pass.unit, error.message()),
        error.where(),
        found->second.made ? error.fix() : "run.graphs = false issues every kernel separately");
  }
  ++counts_.replayed;
}

void PassGraphs::record(Recording& recording, const RepeatedPass& pass,
                        const std::function<void()>& issue) {
  Capture capture(stream_);
  recorded_at_ = &pass.random, masks_ = false;
  try {
    issue();
  } catch (...) {
    recorded_at_ = nullptr;
    throw;
  }
  recorded_at_ = nullptr;
  const Graph graph = capture.end();
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph.get(), nullptr, &nodes), "cudaGraphGetNodes");
  if (nodes > 0) {
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph.get(), 0), "cudaGraphInstantiate");
    recording.graph.reset(made);
    ++counts_.recordings;
  }
  recording.masks = masks_;
  recording.made = true;
}

void PassGraphs::launch(const Recording& recording, const RandomAt& random) {
  if (recording.graph == nullptr) return;
  const MaskPlace place{random.step, random.sample};
  if (recording.masks && placed_ != place) {
    place_masks(stream_, place, workspace_.mask_place());
    placed_ = place;
  }
  check(cudaGraphLaunch(recording.graph.get(), stream_), "cudaGraphLaunch");
}

const MaskPlace* PassGraphs::mask_place(const RandomAt& at) {
  if (recorded_at_ == nullptr) return nullptr;
  CONCERTINA_CHECK(at == *recorded_at_, "the mask's step or sample is not that of its pass");
  masks_ = true;
  return workspace_.mask_place();
}

void PassGraphs::forget() {
  recordings_.clear();
  placed_.reset();
}

std::size_t PassGraphs::Hash::operator()(Words words) const {
  return XXH3_64bits(words.data(), words.size_bytes());
}

}  // namespace concertina::cuda
