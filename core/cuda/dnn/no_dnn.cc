// Linked instead of the other sources of this folder if the build has no cuDNN.
#include "core/cuda/dnn/attention.h"
#include "core/error.h"

namespace concertina::cuda {

const std::string& dnn_problem() {
  static const std::string problem = "built without cuDNN";
  return problem;
}
std::string dnn_version_text() {
  return {};
}
std::unique_ptr<DnnAttentions> make_dnn_attentions(cudaStream_t) {
  throw_failure(dnn_problem(), "cuDNN");
}

}  // namespace concertina::cuda
