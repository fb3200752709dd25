// V-Half (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 4): two chunks
// in a V, with half of 1F1B's activations and half of its bubble. 1F1B saves p microbatches of a
// rank's share of the model, V-Half p / 2 + 1.
#include "parallel/generate/building_block.h"
#include "parallel/generate/weight_fill.h"

namespace concertina {
namespace {

/// (p + 2) / 2 microbatches of both chunks.
int limit(int p) {
  return 2 * ((p + 2) / 2);
}

Rows generate(const PipelineShape& shape) {
  const Rows order = repeat_block(
      shape, {.forward_down = 1, .forward_up = 2, .backward_up = 1, .backward_down = 2});
  return fill_weights(shape, order, {.limit = limit(shape.ranks)});
}

}  // namespace

Schedule schedule_v_half() {
  return {.generate = generate,
          .placement = Placement::wave,
          .chunks = {.default_value = 2, .step = 2, .most = 2},
          .about = "half the memory and bubble of 1f1b (Qi et al. 2024)",
          .bubble = {"(3p-4)/(6m) if m >= p > 2",
                     [](int p, int m, int) {
                       return claim(m >= p, (p > 2 ? 3 * p - 4 : 3 * p - 3) / (6.0 * m));
                     }},
          .peak = {"2 floor(p/2 + 1)",
                   [](int p, int m, int) { return claim(true, limit(p), m >= p); }}};
}

}  // namespace concertina
