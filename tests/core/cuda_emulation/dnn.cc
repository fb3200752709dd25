#include "tests/core/cuda_emulation/dnn.h"

#include "core/cuda/backend.h"
#include "core/cuda/dnn/attention.h"
#include "core/error.h"

namespace concertina {
namespace {

std::string problem = "no cuDNN is emulated";
std::string plan_problem;

class Unrun final : public Attention {
 public:
  void forward(View, View, View) override { throw_failure("no cuDNN is emulated", "cuDNN"); }
  void backward(View, View, View, View, View) override { forward({}, {}, {}); }
};

class Emulated final : public cuda::DnnAttentions {
 public:
  const std::string& problem(const AttentionShape&) override { return plan_problem; }
  std::unique_ptr<Attention> make(const AttentionShape&, const cuda::Workspace&) override {
    return std::make_unique<Unrun>();
  }
};

}  // namespace

void emulation::set_dnn_problem(std::string why) {
  problem = std::move(why);
}
void emulation::set_dnn_plan_problem(std::string why) {
  plan_problem = std::move(why);
}

const std::string& cuda::dnn_problem() {
  return problem;
}
std::string cuda::dnn_status() {
  return problem.empty() ? "9.99.0" : problem;
}
std::unique_ptr<cuda::DnnAttentions> cuda::make_dnn_attentions(cudaStream_t) {
  return std::make_unique<Emulated>();
}

}  // namespace concertina
