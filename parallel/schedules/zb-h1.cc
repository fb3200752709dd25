// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2 and figure 3): the order of
// 1F1B with a split backward pass. Weight gradients wait until a rank would be idle, or would save
// more than p microbatches, which is what 1F1B saves on its first rank.
// The bubble (p - 1)(F + I - W) is a third of 1F1B's if F = I = W.
#include <algorithm>

#include "parallel/generate/building_block.h"
#include "parallel/generate/weight_fill.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  const Rows order = one_f_one_b(shape.ranks, shape.microbatches, 1, Kind::I);
  return fill_weights(shape, order, {.limit = shape.ranks});
}

}  // namespace

Schedule schedule_zb_h1() {
  return {.generate = generate,
          .chunks = {.most = 1},
          .about = "zero bubble, memory of 1f1b (Qi et al. 2023)",
          .bubble = {"(p-1)/(3m) if m >= p",
                     [](int p, int m, int) {
                       return claim(true, std::max(p - 1, 2 * p - 1 - m) / (3.0 * m));
                     }},
          .peak = {"min(m, p)", [](int p, int m, int) { return claim(true, std::min(m, p)); }}};
}

}  // namespace concertina
