// Stochastic gradient descent with momentum (beta1) and decoupled weight decay.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerConfig& config) : config_(config) {}

  std::vector<std::string_view> state_names() const override { return {"momentum"}; }

  void update(Backend& backend, const UpdateStep& step, bool decay, View w,
              std::span<const View> states, View g) const override {
    const double kept = decay ? 1 - step.lr * config_.weight_decay : 1;
    backend.run(Axpby{
        .a = step.grad_scale, .x = g, .b = static_cast<float>(config_.beta1), .y = states[0]});
    backend.run(Axpby{
        .a = static_cast<float>(-step.lr), .x = states[0], .b = static_cast<float>(kept), .y = w});
  }

 private:
  OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(const OptimizerConfig& config) {
  return std::make_unique<Sgd>(config);
}

}  // namespace concertina::optimizer_rules
