// Gradient descent with momentum, its own knob, and decoupled weight decay.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class HeavyBall final : public Optimizer {
 public:
  explicit HeavyBall(const OptimizerConfig& config)
      : momentum_(static_cast<float>(option<double>(config.options, "momentum"))),
        weight_decay_(config.weight_decay) {}

  std::vector<std::string_view> state_names() const override { return {"momentum"}; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    const double kept = tensor.decay ? 1 - step.lr * weight_decay_ : 1;
    backend.run(Axpby{.a = step.grad_scale, .x = tensor.g, .b = momentum_, .y = tensor.states[0]});
    backend.run(Axpby{.a = static_cast<float>(-step.lr),
                      .x = tensor.states[0],
                      .b = static_cast<float>(kept),
                      .y = tensor.w});
  }

 private:
  float momentum_;
  double weight_decay_;
};

std::unique_ptr<Optimizer> make_heavy_ball(const OptimizerConfig& config) {
  return std::make_unique<HeavyBall>(config);
}

}  // namespace

OptimizerRule heavy_ball() {
  return {.make = make_heavy_ball,
          .options = {{"momentum", 0.9, "what stays of the last steps' sum", 0, 0.9999}}};
}

}  // namespace concertina::optimizer_rules
