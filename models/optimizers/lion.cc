// Lion: steps of one size, by the sign of an interpolated momentum, with decoupled weight decay
// (Chen et al. 2023, algorithm 2). Of the keys of all it reads weight_decay; its rate is 3 to 10
// times smaller than AdamW's, its decay larger by as much (section 5).
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class LionOptimizer final : public Optimizer {
 public:
  explicit LionOptimizer(const OptimizerConfig& config)
      : beta1_(static_cast<float>(option<double>(config.options, "beta1"))),
        beta2_(static_cast<float>(option<double>(config.options, "beta2"))),
        decay_(static_cast<float>(config.weight_decay)) {}

  std::vector<std::string_view> state_names() const override { return {"m"}; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    backend.run(LionUpdate{.rule = {.lr = static_cast<float>(step.lr),
                                    .beta1 = beta1_,
                                    .beta2 = beta2_,
                                    .decay = tensor.decay ? decay_ : 0,
                                    .grad_scale = step.grad_scale},
                           .w = tensor.w,
                           .m = tensor.states[0],
                           .g = tensor.g});
  }

 private:
  float beta1_, beta2_, decay_;
};

}  // namespace

OptimizerRule lion() {
  return {.make = make_rule<LionOptimizer>,
          .options = {{"beta1", 0.9, "share of the momentum in what the sign is of", 0, 0.9999},
                      {"beta2", 0.99, "what stays of the momentum", 0, 0.9999}}};
}

}  // namespace concertina::optimizer_rules
