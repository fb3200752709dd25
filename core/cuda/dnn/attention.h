// Attention by cuDNN's fused kernels. Needs no cuDNN in the build: it then says so.
// Invariant: the same bits run to run. The gradient of q is a sum that cuDNN orders by keeping the
// scores' gradient [samples,H,T,T] in bf16; its scratch grows with T squared.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/cuda/base/workspace.h"

namespace concertina::cuda {

/// The attention of one stream: a plan a shape, shared by all that ask for it.
class DnnAttentions {
 public:
  virtual ~DnnAttentions() = default;
  /// Why there is no plan for `shape`; empty where there is one. The first call plans, and logs.
  virtual const std::string& problem(const AttentionShape& shape) = 0;
  /// To be called where there is no problem. `workspace` outlives the result.
  virtual std::unique_ptr<Attention> make(const AttentionShape& shape,
                                          const Workspace& workspace) = 0;
};

/// The attentions of the current device. Throws a failure where there is no cuDNN.
std::unique_ptr<DnnAttentions> make_dnn_attentions(cudaStream_t stream);

/// Why cuDNN cannot be used on this machine, whatever the device; empty where it can.
const std::string& dnn_problem();
/// "9.19.0", where it can.
std::string dnn_version_text();

}  // namespace concertina::cuda
