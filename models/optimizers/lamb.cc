// LAMB: Adam whose step has, in each tensor, the norm of the weights (You et al. 2020, algorithm
// 2). A tensor is what the model has as one: queries, keys and values together. Tensors without
// weight decay (norms, biases) take Adam's step as it is, as in NVIDIA's and timm's
// implementations; with `adapt_all` they follow the paper's algorithm too.
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
              {"adapt_all", false, "tensors without weight decay have the trust ratio as well"}}};
}

}  // namespace concertina::optimizer_rules
