// LAMB: Adam whose step has, in each tensor, the norm of the weights (You et al. 2020, algorithm
// 2). A tensor is what the model has as one: queries, keys and values together. Tensors without
// weight decay (norms, biases) take Adam's step as it is, as in NVIDIA's and timm's
// implementations; with `adapt_all` they follow the paper's algorithm too.
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
namespace {

class LambOptimizer final : public Optimizer {
 public:
  explicit LambOptimizer(const OptimizerConfig& config)
      : config_(config), adapt_all_(option<bool>(config.options, "adapt_all")) {}

  std::vector<std::string_view> state_names() const override { return {"m", "v"}; }
  bool whole_tensors() const override { return true; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    backend.run(
        LambUpdate{.rule = {adam_of(config_, step, tensor.decay), tensor.decay || adapt_all_},
                   .w = tensor.w,
                   .m = tensor.states[0],
                   .v = tensor.states[1],
                   .g = tensor.g});
  }

 private:
  OptimizerConfig config_;
  bool adapt_all_;
};

}  // namespace

OptimizerRule lamb() {
  return {.make = make_rule<LambOptimizer>,
          .options = {
              {"adapt_all", false, "tensors without weight decay have the trust ratio as well"}}};
}

}  // namespace concertina::optimizer_rules
