// Lion: steps of uniform size in the direction of the sign of an interpolated momentum, with
// decoupled weight decay (Chen et al. 2023, algorithm 2). It uses the common key weight_decay. The
// learning rate should be 3 to 10 times smaller than AdamW's, and the decay larger by that factor.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_lion(const OptimizerConfig& config) {
  const LionRule defaults{.beta1 = static_cast<float>(option<double>(config.options, "beta1")),
                          .beta2 = static_cast<float>(option<double>(config.options, "beta2")),
                          .decay = static_cast<float>(config.weight_decay)};
  return plain_optimizer(
      {"m"}, [defaults](Backend& backend, const UpdateStep& step, const UpdatedTensor& tensor) {
        LionRule rule = defaults;
        rule.lr = static_cast<float>(step.lr);
        rule.grad_scale = step.grad_scale;
        if (!tensor.decay) rule.decay = 0;
        backend.run(LionUpdate{.rule = rule, .w = tensor.w, .m = tensor.states[0], .g = tensor.g});
      });
}

}  // namespace

OptimizerRule lion() {
  return {
      .make = make_lion,
      .options = {{"beta1", 0.9,
                   "weight of the momentum in the interpolation whose sign is the step", 0, 0.9999},
                  {"beta2", 0.99, "decay rate of the momentum", 0, 0.9999}}};
}

}  // namespace concertina::optimizer_rules
