// Gradient descent with momentum as its own option, and decoupled weight decay.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_heavy_ball(const OptimizerConfig& config) {
  const auto momentum = static_cast<float>(option<double>(config.options, "momentum"));
  return plain_optimizer({"momentum"}, [momentum, weight_decay = config.weight_decay](
                                           Backend& backend, const UpdateStep& step,
                                           const UpdatedTensor& tensor) {
    const double kept = tensor.decay ? 1 - step.lr * weight_decay : 1;
    backend.run(Axpby{.a = step.grad_scale, .x = tensor.g, .b = momentum, .y = tensor.states[0]});
    backend.run(Axpby{.a = static_cast<float>(-step.lr),
                      .x = tensor.states[0],
                      .b = static_cast<float>(kept),
                      .y = tensor.w});
  });
}

}  // namespace

OptimizerRule heavy_ball() {
  return {.make = make_heavy_ball,
          .options = {{"momentum", 0.9, "what stays of the last steps' sum", 0, 0.9999}}};
}

}  // namespace concertina::optimizer_rules
