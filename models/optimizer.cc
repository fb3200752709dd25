#include "models/optimizer.h"

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

/// Another optimizer, with what a config adds to any of them: kept zeros, an L1 penalty, and an
/// average of the weights, which is equal to the weights after a tensor's first update.
class ExtendedOptimizer final : public Optimizer {
 public:
  ExtendedOptimizer(std::unique_ptr<Optimizer> inner, const OptimizerConfig& config)
      : inner_(std::move(inner)),
        l1_(config.l1),
        keep_zeros_(config.keep_zeros),
        ema_(static_cast<float>(config.ema)) {}

  std::vector<std::string_view> state_names() const override {
    std::vector<std::string_view> names = inner_->state_names();
    if (ema_ > 0) names.push_back(kAverage);
    return names;
  }
  bool whole_tensors() const override { return inner_->whole_tensors(); }
  double update_flops(const ParameterSpec& parameter) const override {
    return inner_->update_flops(parameter);
  }
  std::unique_ptr<UpdateTools> tools(Backend& backend,
                                     std::span<const BucketTensor* const> tensors) const override {
    return inner_->tools(backend, tensors);
  }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    UpdatedTensor of_inner = tensor;
    of_inner.states = tensor.states.first(tensor.states.size() - (ema_ > 0 ? 1 : 0));
    if (keep_zeros_ && tensor.decay) {
      backend.run(KeepZeros{.w = tensor.w, .x = tensor.g});
      for (const View& state : of_inner.states) backend.run(KeepZeros{.w = tensor.w, .x = state});
    }
    inner_->update(backend, step, of_inner);
    if (l1_ > 0 && tensor.decay)
      backend.run(Shrink{.x = tensor.w, .by = static_cast<float>(step.lr * l1_)});
    if (ema_ > 0) {
      const float kept = step.step == 1 ? 0 : ema_;
      backend.run(Axpby{.a = 1 - kept, .x = tensor.w, .b = kept, .y = tensor.states.back()});
    }
  }

 private:
  std::unique_ptr<Optimizer> inner_;
  double l1_;
  bool keep_zeros_;
  float ema_;
};

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
  const OptimizerRule& rule = lookup(optimizers(), name, "optimizer", "optimizer.name");
  OptimizerConfig complete = config;
  complete.options = with_defaults(rule.options, config.options);
  std::unique_ptr<Optimizer> made = rule.make(complete);
  if (config.l1 == 0 && !config.keep_zeros && config.ema == 0) return made;
  return std::make_unique<ExtendedOptimizer>(std::move(made), config);
}

}  // namespace concertina
