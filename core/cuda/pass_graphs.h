// Passes of units as CUDA graphs. The first time a key is seen, its pass is issued kernel by
// kernel, so that libraries do their first-use work (loading code, allocating). The second time, it
// is recorded; from then on, one call launches it.
// Invariants: a graph is launched only under the key of its recording, compared in full. There are
// never more than `most` graphs; passes with other keys are issued.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/backend.h"
#include "core/cuda/base/handles.h"
#include "core/cuda/base/workspace.h"
#include "core/cuda/kernels/kernels.h"

namespace concertina::cuda {

class PassGraphs {
 public:
  /// `stream` and `workspace` must outlive this object.
  PassGraphs(const Stream& stream, const Workspace& workspace, std::size_t most)
      : stream_(stream), workspace_(workspace), most_(most) {}

  /// Throws Error{failure}, naming the unit, if a pass cannot be recorded or launched.
  void run(const RepeatedPass& pass, const std::function<void()>& issue);
  void forget();
  PassCounts counts() const { return counts_; }

  /// For kernels that generate a mask: returns the location of the mask's step and sample during a
  /// launch of the graph; null if nothing is being recorded.
  const MaskPlace* mask_place(const RandomAt& at);

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const {
      log_failure(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
    }
  };
  struct Recording {
    bool made = false;
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> graph;  // null: no kernels
    bool masks = false;  // uses the location of masks
  };
  using Words = std::span<const std::uint64_t>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(Words words) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Words a, Words b) const { return std::ranges::equal(a, b); }
  };

  void record(Recording& recording, const RepeatedPass& pass, const std::function<void()>& issue);
  void launch(const Recording& recording, const RandomAt& random);

  const Stream& stream_;
  const Workspace& workspace_;
  std::size_t most_;
  std::unordered_map<std::vector<std::uint64_t>, Recording, Hash, Equal> recordings_;
  PassCounts counts_;
  const RandomAt* recorded_at_ = nullptr;  // the pass being recorded
  bool masks_ = false;                     // whether it generates a mask
  std::optional<MaskPlace> placed_;        // current value on the device
};

}  // namespace concertina::cuda
