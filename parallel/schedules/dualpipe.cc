// DualPipe (DeepSeek-AI 2024, DeepSeek-V3 technical report, section 3.2.1 and figure 5; steps as in
// its public implementation): two opposite pipelines on the same ranks, with forwards of one
// overlapped with backwards of the other. Published for even p, even m and m >= 2p; other m use the
// order for the next such number without the surplus microbatches.
// The published bubble is (p/2 - 1)(F&B + B - 3W), or p/2 - 1 if F = I = W and nothing overlaps.
#include <algorithm>

#include "parallel/generate/dual_steps.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& down, const PipelineShape& up) {
  const int p = down.ranks;
  const int microbatches = std::max({p, down.microbatches, up.microbatches});
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank) {
    const int from_end = std::min(rank, p - 1 - rank);
    for (const DualPass& pass : dual_steps(p / 2, from_end, microbatches)) {
      const bool is_down = (pass.side == 0) == (rank < p / 2);
      if (pass.microbatch >= (is_down ? down : up).microbatches) continue;
      rows[rank].push_back(
          is_down ? Action{pass.kind, rank, pass.microbatch}
                  : Action{pass.kind, 2 * p - 1 - rank, down.microbatches + pass.microbatch});
    }
  }
  return rows;
}

}  // namespace

Schedule schedule_dualpipe() {
  return {.generate_pair = generate,
          .placement = Placement::opposite,
          .chunks = {.most = 1},
          .rank_step = 2,
          .about = "two opposite pipelines, F overlapped with B (DeepSeek-AI 2024)",
          .bubble = {"(p/2-1)/(3m) if m >= 2p, and m/2 go each way",
                     [](int p, int m, int) {
                       return claim(m % 2 == 0 && m >= 2 * p, (p / 2 - 1) / (3.0 * m));
                     }},
          .peak = {"min(m, p + 1)",
                   [](int p, int m, int) { return claim(true, std::min(m, p + 1), m >= 2 * p); }}};
}

}  // namespace concertina
