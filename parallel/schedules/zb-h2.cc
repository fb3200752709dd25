// ZB-H2 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2 and figure 3): twice as many
// forwards ahead as in 1F1B, so that no rank is idle between its first and last action. Saves up to
// 2p - 1 microbatches. Needs m >= 2p - 1; with fewer, the missing microbatches leave a bubble.
#include <algorithm>

#include "parallel/generate/building_block.h"
#include "parallel/generate/weight_fill.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  const Rows order = one_f_one_b(shape.ranks, shape.microbatches, 2, Kind::I);
  return fill_weights(shape, order, {.limit = 2 * shape.ranks - 1});
}

}  // namespace

Schedule schedule_zb_h2() {
  return {.generate = generate,
          .chunks = {.most = 1},
          .about = "zero bubble, twice the memory of 1f1b (Qi et al. 2023)",
          .bubble = {"0 if m >= 2p - 1",
                     [](int p, int m, int) {
                       return claim(true, std::max(0, 2 * p - 1 - m) / (3.0 * m));
                     }},
          .peak = {"min(m, 2p - 1)",
                   [](int p, int m, int) { return claim(true, std::min(m, 2 * p - 1)); }}};
}

}  // namespace concertina
