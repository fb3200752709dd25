// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).
#include "models/optimizer.h"

namespace concertina {
namespace {

class AdamWRule final : public Optimizer {
 public:
  explicit AdamWRule(const OptimizerConfig& config) : config_(config) {}

  std::vector<std::string_view> state_names() const override { return {"m", "v"}; }

  void update(Backend& backend, const UpdateStep& step,
              const UpdatedTensor& tensor) const override {
    backend.run(AdamWUpdate{.rule = adam_of(config_, step, tensor.decay),
                            .w = tensor.w,
                            .m = tensor.states[0],
                            .v = tensor.states[1],
                            .g = tensor.g});
  }

 private:
  OptimizerConfig config_;
};

std::unique_ptr<Optimizer> make_adamw(const OptimizerConfig& config) {
  return std::make_unique<AdamWRule>(config);
}

}  // namespace

namespace optimizer_rules {

OptimizerRule adamw() {
  return {.make = make_adamw};
}

}  // namespace optimizer_rules
}  // namespace concertina
