// LAMB: Adam, with the step of each tensor scaled to the norm of the weights (You et al. 2020,
// algorithm 2). A tensor is one parameter of the model, so queries, keys and values count together.
// Tensors without weight decay (norms, biases) use plain Adam steps, as in NVIDIA's and timm's
// implementations; with `adapt_all` they follow the paper's algorithm.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_lamb(const OptimizerConfig& config) {
  const bool adapt_all = option<bool>(config.options, "adapt_all");
  const auto update = [config, adapt_all](Backend& backend, const UpdateStep& step,
                                          const UpdatedTensor& tensor) {
    backend.run(LambUpdate{.rule = {adam_of(config, step, tensor.decay), tensor.decay || adapt_all},
                           .w = tensor.w,
                           .m = tensor.states[0],
                           .v = tensor.states[1],
                           .g = tensor.g});
  };
  return plain_optimizer({"m", "v"}, update, /*whole_tensors=*/true);
}

}  // namespace

OptimizerRule lamb() {
  return {.make = make_lamb,
          .options = {
              {"adapt_all", false, "apply the trust ratio to tensors without weight decay, too"}}};
}

}  // namespace concertina::optimizer_rules
