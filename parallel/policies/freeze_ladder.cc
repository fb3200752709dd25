#include "parallel/policies/freeze_ladder.h"

#include <algorithm>
#include <numeric>

namespace concertina {
namespace {

double frozen_forward(const LadderShape& shape) {
  return shape.frozen > 0 ? shape.frozen : shape.forward;
}

/// The longest path through `microbatches` equal jobs that pass the stages one after the other.
double flow(const std::vector<double>& stages, int microbatches) {
  return std::accumulate(stages.begin(), stages.end(), 0.0) +
         (microbatches - 1) * *std::max_element(stages.begin(), stages.end());
}

/// The backward pass through `trained` layers, of which the first trained one of the model is one
/// where `first`.
double backward_of(const LadderShape& shape, double trained, bool first) {
  const double left_out = first ? shape.first_input * std::min(1.0, trained) : 0;
  return (shape.input + shape.weight) * trained - left_out;
}

/// A step of gpipe: all forwards, then all backwards (the last stage ends its forwards last), on
/// stages of as many layers each.
double gpipe_step(const LadderShape& shape, double frozen) {
  const double share = static_cast<double>(shape.layers) / shape.stages;
  std::vector<double> forward, backward;
  for (int s = 1; s <= shape.stages; ++s) {
    const double trained = std::clamp(s * share - frozen, 0.0, share);
    forward.push_back(trained * shape.forward + (share - trained) * frozen_forward(shape));
    backward.push_back(
        backward_of(shape, trained, frozen > 0 && trained > 0 && (s - 1) * share <= frozen));
  }
  return flow(forward, shape.microbatches) + flow(backward, shape.microbatches);
}

/// Time over that of the unfrozen run, where `layers` is that share of the layers' time.
double with_fixed(const LadderShape& shape, double layers) {
  return shape.fixed + (1 - shape.fixed) * layers;
}

}  // namespace

FreezeLadder freeze_ladder(std::span<const double> frozen, const LadderShape& shape) {
  CONCERTINA_CHECK(!frozen.empty() && shape.layers >= 1 && shape.stages >= 1,
                   "{} epochs, {} layers on {} stages", frozen.size(), shape.layers, shape.stages);
  CONCERTINA_CHECK(shape.fixed >= 0 && shape.fixed < 1, "a fixed share of {}", shape.fixed);
  double pipeline = 0, left = 0, cached = 0, before = 0;
  for (const double f : frozen) {
    CONCERTINA_CHECK(f >= before && f <= shape.layers, "{} layers frozen after {}", f, before);
    const double trained = shape.layers - f;
    const double training = trained * shape.forward + backward_of(shape, trained, f > 0);
    pipeline += gpipe_step(shape, f);
    left += f * frozen_forward(shape) + training;
    cached += (f - before) * frozen_forward(shape) + training;
    before = f;
  }
  const double epochs = static_cast<double>(frozen.size());
  const double work = (shape.forward + shape.input + shape.weight) * shape.layers * epochs;
  const double unfrozen = gpipe_step(shape, 0) * epochs;
  // A step of gpipe takes so much longer than the same work on replicas.
  const double bubble = unfrozen * shape.stages / (work * shape.microbatches);
  const double freeze = 1 / with_fixed(shape, pipeline / unfrozen);
  // Equal stages and replicas do the same work, the former with the bubble of the unfrozen run.
  const double equal = 1 / with_fixed(shape, left / work);
  const double cache = 1 / with_fixed(shape, cached / work);
  return {.freeze = {freeze, freeze / bubble},
          .repack = {equal, equal / bubble},
          .replicas = {equal * bubble, equal},
          .cache = {cache * bubble, cache}};
}

std::vector<double> foreseen_course(const FreezeRules& rules, int epochs,
                                    std::int64_t steps_per_epoch) {
  if (rules.policy->plan_skips != nullptr)
    throw_input(fmt::format("freeze.policy = \"{}\" leaves out weight gradients and freezes no "
                            "layer: what it gives is in the run's event freeze",
                            rules.name),
                "freeze.policy", "a policy that freezes layers, such as pipetransformer");
  if (!rules.policy->foreseen)
    throw_input(
        fmt::format("what freeze.policy = \"{}\" freezes depends on the run, and is not known "
                    "before",
                    rules.name),
        "freeze.policy", "a policy that follows epochs and steps, such as pipetransformer");
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
