#include "tests/core/cuda_emulation/dnn.h"

#include "core/cuda/dnn/attention.h"
#include "core/error.h"

namespace concertina {
namespace {

std::string problem = "no cuDNN is emulated";
std::string plan_problem;

class Unrun final : public Attention {
 public:
  using Attention::Attention;
  void forward(const AttentionForward&) override { refuse(); }
  void backward(const AttentionBackward&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw_failure("no cuDNN is emulated", "cuDNN"); }
};

class Emulated final : public cuda::DnnAttentions {
 public:
  const std::string& problem(const AttentionShape&) override { return plan_problem; }
  std::unique_ptr<Attention> make(const AttentionShape& shape, const cuda::Workspace&) override {
    return std::make_unique<Unrun>(shape);
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
std::string cuda::dnn_version_text() {
  return "9.99.0";
}
std::unique_ptr<cuda::DnnAttentions> cuda::make_dnn_attentions(cudaStream_t) {
  return std::make_unique<Emulated>();
}

}  // namespace concertina
