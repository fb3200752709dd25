// DualPipeV (DeepSeek-AI 2025, public implementation; "cut in half" after Qi et al. 2025): DualPipe
// on 2p ranks, folded in the middle, so that one copy of the weights in a V of two chunks serves
// both directions. Published for m >= 2p; smaller m use the order for m = 2p without the surplus
// microbatches.
#include <algorithm>

#include "parallel/generate/dual_steps.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  const int p = shape.ranks;
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank)
    for (const DualPass& pass : dual_steps(p, rank, std::max(shape.microbatches, 2 * p)))
      if (pass.microbatch < shape.microbatches)
        rows[rank].push_back(
            {pass.kind, pass.side == 0 ? rank : 2 * p - 1 - rank, pass.microbatch});
  return rows;
}

}  // namespace

Schedule schedule_dualpipe_v() {
  return {.generate = generate,
          .placement = Placement::wave,
          .chunks = {.default_value = 2, .step = 2, .most = 2},
          .about = "dualpipe folded into a V (DeepSeek-AI 2025)",
          .bubble = {"(p-1)/(6m) if m >= 2p",
                     [](int p, int m, int) { return claim(m >= 2 * p, (p - 1) / (6.0 * m)); }},
          .peak = {"min(2m, 2p + 1)", [](int p, int m, int) {
                     return claim(true, std::min(2 * m, 2 * p + 1), m >= 2 * p);
                   }}};
}

}  // namespace concertina
