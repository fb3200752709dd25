// V-Min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 4): two chunks in
// a V, neighbors one step apart, with the shortest possible lifespan: a third of 1F1B's activations
// and two thirds of its bubble.
// Its passes depend closely on each other, so unbalanced stages cost more here.
#include "parallel/generate/building_block.h"
#include "parallel/generate/weight_fill.h"

namespace concertina {
namespace {

/// (p + 4) / 3 microbatches of both chunks.
int limit(int p) {
  return 2 * ((p + 4) / 3);
}

Rows generate(const PipelineShape& shape) {
  return fill_weights(shape, repeat_block(shape, {}), {.limit = limit(shape.ranks)});
}

}  // namespace

Schedule schedule_v_min() {
  return {.generate = generate,
          .placement = Placement::wave,
          .chunks = {.default_value = 2, .step = 2, .most = 2},
          .about = "a third of the memory and 2/3 of the bubble of 1f1b (Qi et al. 2024)",
          .bubble = {"(4p-5)/(6m), (4p-3)/(6m) if 3 divides p, if m >= p",
                     [](int p, int m, int) {
                       // If 3 divides p, the passes would collide without a wait at the turns.
                       const int idle = p == 1 ? 0 : 4 * (p - 1) + (p % 3 == 0 ? 1 : -1);
                       return claim(m >= p, idle / (6.0 * m));
                     }},
          .peak = {"2 floor((p+4)/3)",
                   [](int p, int m, int) { return claim(true, limit(p), m >= p); }}};
}

}  // namespace concertina
