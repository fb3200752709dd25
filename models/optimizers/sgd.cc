// Stochastic gradient descent with momentum, as in torch.optim.SGD. Of the common keys it uses
// weight_decay, which is added to the gradient (L2) rather than decoupled.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_sgd(const OptimizerConfig& config) {
  const SgdRule default_value{
      .momentum = static_cast<float>(option<double>(config.options, "momentum")),
      .fresh = static_cast<float>(1 - option<double>(config.options, "dampening")),
      .decay = static_cast<float>(config.weight_decay),
      .nesterov = option<bool>(config.options, "nesterov")};
  return plain_optimizer({"m"}, [default_value](Backend& backend, const UpdateStep& step,
                                                const UpdatedTensor& tensor) {
    SgdRule rule = default_value;
    rule.lr = static_cast<float>(step.lr);
    rule.grad_scale = step.grad_scale;
    if (step.step == 1) rule.fresh = 1;
    if (!tensor.decay) rule.decay = 0;
    backend.run(SgdUpdate{.rule = rule, .w = tensor.w, .m = tensor.states[0], .g = tensor.g});
  });
}

}  // namespace

OptimizerRule sgd() {
  return {
      .make = make_sgd,
      .options = {
          {"momentum", 0.9, "decay rate of the momentum", 0, 0.9999},
          {"dampening", 0.0,
           "fraction of each gradient left out of the momentum, except at the first step", 0, 1},
          {"nesterov", false, "use Nesterov momentum"}}};
}

}  // namespace concertina::optimizer_rules
