#include "experiments/planner/gpt_flops.h"

namespace concertina {

std::string_view name_of(Recompute recompute) {
  constexpr std::string_view kNames[] = {"none", "selective", "full"};
  return kNames[static_cast<int>(recompute)];
}

ForwardFlops forward_flops(const ModelSection& model) {
  const double s = model.context, h = model.width;
  return {24 * s * h * h, 4 * s * s * h, 2 * s * h * model.vocab};
}

double hardware_flops(const RunConfig& config, Recompute recompute) {
  const ForwardFlops forward = forward_flops(config.model);
  const double again = recompute == Recompute::none        ? 0
                       : recompute == Recompute::selective ? forward.attention
                                                           : forward.products + forward.attention;
  return config.batch.global *
         (config.model.layers * (3 * (forward.products + forward.attention) + again) +
          3 * forward.head);
}

}  // namespace concertina
