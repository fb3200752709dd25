#include "models/optimizer.h"

#include <algorithm>

#include "optimizer_table.h"

namespace concertina {

namespace {

class PlainOptimizer final : public Optimizer {
 public:
  PlainOptimizer(std::vector<std::string_view> states, PlainUpdate update, bool whole_tensors)
      : states_(std::move(states)), update_(std::move(update)), whole_tensors_(whole_tensors) {}

  std::vector<std::string_view> state_names() const override { return states_; }
  bool whole_tensors() const override { return whole_tensors_; }
  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    update_(backend, step, tensor);
  }

 private:
  std::vector<std::string_view> states_;
  PlainUpdate update_;
  bool whole_tensors_;
};

void require(bool good, std::string_view key, double value, std::string_view fix) {
  if (!good)
    throw_input(fmt::format("{} = {} is out of range", key, value), std::string(key),
                std::string(fix));
}

}  // namespace

AdamW adam_of(const OptimizerConfig& config, const UpdateStep& step, bool decay) {
  return {.lr = static_cast<float>(step.lr),
          .beta1 = static_cast<float>(config.beta1),
          .beta2 = static_cast<float>(config.beta2),
          .eps = static_cast<float>(config.eps),
          .weight_decay = decay ? static_cast<float>(config.weight_decay) : 0.0F,
          .grad_scale = step.grad_scale,
          .step = step.step};
}

std::unique_ptr<Optimizer> plain_optimizer(std::vector<std::string_view> states, PlainUpdate update,
                                           bool whole_tensors) {
  return std::make_unique<PlainOptimizer>(std::move(states), std::move(update), whole_tensors);
}

CONCERTINA_REGISTRY_IN(CONCERTINA_OPTIMIZERS, OptimizerRule, optimizer_rules, optimizers)

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const OptimizerConfig& config) {
  // Written so that NaN also fails.
  for (const double beta : {config.beta1, config.beta2})
    require(beta >= 0 && beta < 1, "optimizer.betas", beta, "two numbers in [0, 1)");
  require(config.eps > 0 && config.eps <= 1, "optimizer.eps", config.eps, "a number in (0, 1]");
  require(config.weight_decay >= 0 && config.weight_decay <= 1e3, "optimizer.weight_decay",
          config.weight_decay, "a number in [0, 1000]");
  const OptimizerRule& rule = lookup(optimizers(), name, "optimizer", "optimizer.name");
  OptimizerConfig complete = config;
  complete.options = with_defaults(rule.options, config.options);
  return rule.make(complete);
}

}  // namespace concertina
