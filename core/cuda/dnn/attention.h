// Attention with cuDNN's fused kernels. Builds without cuDNN report its absence as the problem.
// Invariant: results are bit-identical in every run. For a deterministic gradient of q, cuDNN keeps
// the scores' gradient [samples,H,T,T] in bf16, so its scratch grows with T squared.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/cuda/base/workspace.h"

namespace concertina::cuda {

/// The attention plans of one stream, one per shape, shared by all operators.
class DnnAttentions {
 public:
  virtual ~DnnAttentions() = default;
  /// Returns why there is no plan for `shape`; empty if there is one. The first call creates it.
  virtual const std::string& problem(const AttentionShape& shape) = 0;
  /// Requires that problem() is empty. `workspace` must outlive the result.
  virtual std::unique_ptr<Attention> make(const AttentionShape& shape,
                                          const Workspace& workspace) = 0;
};

/// Creates the plans for the current device. Throws Error{failure} if there is no cuDNN.
std::unique_ptr<DnnAttentions> make_dnn_attentions(cudaStream_t stream);

/// Returns why cuDNN cannot be used on any device of this machine; empty if it can.
const std::string& dnn_problem();
/// Returns the version, such as "9.19.0", if cuDNN can be used.
std::string dnn_version_text();

}  // namespace concertina::cuda
