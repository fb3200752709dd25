// Chimera (Li & Hoefler 2021, section 3.1 and figure 3): two opposite pipelines on the same ranks,
// each with half of the microbatches in 1F1B order. With F = B and even p they never need a rank at
// the same time, so they are merged by time. More microbatches than p continue in the same pattern:
// (p - 2) / (2m) of the ideal time is idle with F = B, as published (table 2).
#include <algorithm>

#include "parallel/generate/interleave.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& down, const PipelineShape& up) {
  const int p = down.ranks;
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank) {
    std::vector<TimedAction> timed;
    const auto add = [&](int stage, int stage_id, int microbatches, int first) {
      for (int i = 0; i < microbatches; ++i) {
        timed.push_back({stage + 2.0 * i, {Kind::F, stage_id, first + i}});
        timed.push_back({2 * p - 1 - stage + 2.0 * i, {Kind::B, stage_id, first + i}});
      }
    };
    add(rank, rank, down.microbatches, 0);
    add(p - 1 - rank, 2 * p - 1 - rank, up.microbatches, down.microbatches);
    rows[rank] = in_order(std::move(timed));
  }
  return rows;
}

}  // namespace

Schedule schedule_chimera() {
  return {.generate_pair = generate,
          .placement = Placement::opposite,
          .chunks = {.most = 1},
          .about = "two opposite pipelines of 1f1b (Li & Hoefler 2021)",
          .bubble = {"2(p-2)/(3m) if p is even, m >= p, and m/2 go each way",
                     [](int p, int m, int) {
                       return claim(p % 2 == 0 && m % 2 == 0 && m >= p, 2.0 * (p - 2) / (3.0 * m));
                     }},
          .peak = {"at most p + 1", [](int p, int m, int) {
                     return claim(true, std::min(m, p + 1), m % 2 == 0 && p % 2 == 0 && m <= p);
                   }}};
}

}  // namespace concertina
