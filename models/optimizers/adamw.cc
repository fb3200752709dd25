// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_adamw(const OptimizerConfig& config) {
  return plain_optimizer(
      {"m", "v"}, [config](Backend& backend, const UpdateStep& step, const UpdatedTensor& tensor) {
        backend.run(AdamWUpdate{.rule = adam_of(config, step, tensor.decay),
                                .w = tensor.w,
                                .m = tensor.states[0],
                                .v = tensor.states[1],
                                .g = tensor.g});
      });
}

}  // namespace

OptimizerRule adamw() {
  return {.make = make_adamw};
}

}  // namespace concertina::optimizer_rules
