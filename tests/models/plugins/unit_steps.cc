// Moves each tensor by the same length along its gradient: a rule that needs whole tensors.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

std::unique_ptr<Optimizer> make_unit_steps(const OptimizerConfig& /*config*/) {
  const auto update = [](Backend& backend, const UpdateStep& step, const UpdatedTensor& tensor) {
    backend.run(ScaleToUnit{.x = tensor.g, .least = 1e-7F});
    backend.run(Axpby{.a = static_cast<float>(-step.lr), .x = tensor.g, .b = 1, .y = tensor.w});
  };
  return plain_optimizer({}, update, /*whole_tensors=*/true);
}

}  // namespace

OptimizerRule unit_steps() {
  return {.make = make_unit_steps};
}

}  // namespace concertina::optimizer_rules
