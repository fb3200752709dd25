// ZB-V (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 6; as a building block in Qi et
// al. 2024, section 4): two chunks in a V. For m >= 2p - 1, there is no idle time between a rank's
// first and last action, with the memory of 1F1B: 2p microbatches of stages of half the size.
#include <algorithm>

#include "parallel/generate/building_block.h"
#include "parallel/generate/weight_fill.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  const Rows order = repeat_block(
      shape, {.forward_down = 1, .forward_up = 5, .backward_up = 1, .backward_down = 5});
  return fill_weights(shape, order, {.limit = 2 * shape.ranks, .early_forwards = true});
}

}  // namespace

Schedule schedule_zb_v() {
  return {.generate = generate,
          .placement = Placement::wave,
          .chunks = {.default_value = 2, .step = 2, .most = 2},
          .about = "zero bubble in a V, memory of 1f1b (Qi et al. 2023)",
          .bubble = {"0 if m >= 2p - 1",
                     [](int p, int m, int) {
                       return claim(m >= p, std::max(0, 2 * p - 1 - m) / (6.0 * m));
                     }},
          .peak = {"2 min(m, p)",
                   [](int p, int m, int) { return claim(true, 2 * std::min(m, p), m >= p); }}};
}

}  // namespace concertina
