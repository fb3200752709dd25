#include "parallel/policies/foreseen_course.h"

#include "core/error.h"

namespace concertina {

std::vector<double> foreseen_course(const FreezeRules& rules, int epochs,
                                    std::int64_t steps_per_epoch) {
  if (rules.policy->plan_skips != nullptr)
    throw_input(
        fmt::format("freeze.policy = \"{}\" skips weight gradients and freezes no layers; its "
                    "effect is recorded in the run's freeze event",
                    rules.name),
        "freeze.policy", "a policy that freezes layers, such as pipetransformer");
  if (!rules.policy->foreseen)
    throw_input(
        fmt::format("the layers that freeze.policy = \"{}\" freezes depend on the run and are not "
                    "known in advance",
                    rules.name),
        "freeze.policy", "a policy that depends on epochs and steps only, such as pipetransformer");
  std::vector<double> course;
  FreezeState state;
  FreezeRecord now{.loss = 1, .lr = 1};
  now.grad_norm.resize(static_cast<std::size_t>(rules.layers));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (epoch > 0) {
      now.step = epoch * steps_per_epoch;
      now.epoch = epoch;
      for (int layer = 0; layer < rules.layers; ++layer)
        now.grad_norm[static_cast<std::size_t>(layer)] = layer < now.frozen ? 0 : 1.0 / (layer + 1);
      const FreezeDecision decision = decide(rules, state, now);
      state = remember(rules, std::move(state), now, decision);
      now.frozen = decision.frozen;
    }
    course.push_back(now.frozen);
  }
  return course;
}

}  // namespace concertina
