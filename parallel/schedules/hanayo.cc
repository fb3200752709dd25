// Hanayo (Liu et al. 2023, "Hanayo: Harnessing Wave-like Pipeline Parallelism"): v = 2W chunks in W
// waves back and forth, on one copy of the weights. At each step, a rank takes the backward of the
// oldest microbatch and the latest stage, or a forward by the same rule if there is no backward.
// Published for m = p, with a bubble proportional to 1/W; more microbatches follow the same rule
// with little gain: at p = 4, m = 8, v = 2 a rank is idle for 17 units (F = I = W = 1 on a chunk)
// of a step, compared with 18 for 1f1b on as many chunks, and saves 11 chunks compared with 8; at p
// = 8, m = 16, 41 compared with 42 and 23 compared with 16.
#include <tuple>

#include "parallel/generate/list_schedule.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  std::vector<std::vector<int>> stages(shape.ranks);  // by rank
  for (int s = 0; s < shape.stages(); ++s) stages[shape.stage_rank[s]].push_back(s);
  return list_schedule(shape, [&](int rank, const ListProgress& progress) {
    const auto key = [](const Action& a) {
      return std::tuple(a.kind == Kind::F, a.microbatch, -a.stage);
    };
    std::optional<Action> best;
    for (const int s : stages[rank])
      for (const Action& action : {Action{Kind::B, s, progress.next_backward(s)},
                                   Action{Kind::F, s, progress.next_forward(s)}})
        if (progress.ready(action) && (!best || key(action) < key(*best))) best = action;
    return best;
  });
}

}  // namespace

Schedule schedule_hanayo() {
  return {.generate = generate,
          .placement = Placement::wave,
          .chunks = {.default_value = 2, .step = 2},
          .about = "v/2 waves back and forth (Liu et al. 2023)",
          .bubble = {"at most (2p-2)/(3/2 p v - p + 1) if m = p",
                     [](int p, int m, int v) {
                       // The idle fraction of a step is (2p - 2) / (3pW + p - 1); a claim is
                       // relative to the busy time.
                       return claim(m == p, (2.0 * p - 2) / (1.5 * p * v - p + 1), false);
                     }},
          .peak = {"v m if m <= p", [](int p, int m, int v) { return claim(m <= p, v * m); }}};
}

}  // namespace concertina
