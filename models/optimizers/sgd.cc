// Stochastic gradient descent with momentum, as torch.optim.SGD. Of the keys of all it reads
// weight_decay, which is added to the gradient (L2), not decoupled.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class SgdOptimizer final : public Optimizer {
 public:
  explicit SgdOptimizer(const OptimizerConfig& config)
      : momentum_(static_cast<float>(option<double>(config.options, "momentum"))),
        fresh_(static_cast<float>(1 - option<double>(config.options, "dampening"))),
        nesterov_(option<bool>(config.options, "nesterov")),
        decay_(static_cast<float>(config.weight_decay)) {}

  std::vector<std::string_view> state_names() const override { return {"m"}; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    backend.run(SgdUpdate{.rule = {.lr = static_cast<float>(step.lr),
                                   .momentum = momentum_,
                                   .fresh = step.step == 1 ? 1 : fresh_,
                                   .decay = tensor.decay ? decay_ : 0,
                                   .grad_scale = step.grad_scale,
                                   .nesterov = nesterov_},
                          .w = tensor.w,
                          .m = tensor.states[0],
                          .g = tensor.g});
  }

 private:
  float momentum_, fresh_;
  bool nesterov_;
  float decay_;
};

}  // namespace

OptimizerRule sgd() {
  return {
      .make = make_rule<SgdOptimizer>,
      .options = {{"momentum", 0.9, "what stays of the last steps' sum", 0, 0.9999},
                  {"dampening", 0.0,
                   "share of a gradient that does not enter the sum, but at the first step", 0, 1},
                  {"nesterov", false, "Nesterov's momentum: the step looks one ahead"}}};
}

}  // namespace concertina::optimizer_rules
