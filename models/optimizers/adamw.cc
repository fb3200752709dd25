// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).
#include "models/optimizer.h"

namespace concertina::optimizer_rules {
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

}  // namespace

OptimizerRule adamw() {
  return {.make = make_rule<AdamWRule>};
}

}  // namespace concertina::optimizer_rules
