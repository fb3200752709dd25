// Steps of the same length in each tensor, along the gradient: a rule that needs whole tensors.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class UnitSteps final : public Optimizer {
 public:
  std::vector<std::string_view> state_names() const override { return {}; }
  bool whole_tensors() const override { return true; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    backend.run(ScaleToUnit{.x = tensor.g, .least = 1e-7F});
    backend.run(Axpby{.a = static_cast<float>(-step.lr), .x = tensor.g, .b = 1, .y = tensor.w});
  }
};

std::unique_ptr<Optimizer> make_unit_steps(const OptimizerConfig& /*config*/) {
  return std::make_unique<UnitSteps>();
}

}  // namespace

OptimizerRule unit_steps() {
  return {.make = make_unit_steps};
}

}  // namespace concertina::optimizer_rules
