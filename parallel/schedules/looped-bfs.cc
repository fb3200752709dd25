// Looped breadth-first (Lamy-Poirier 2023, "Breadth-First Pipeline Parallelism"): all microbatches
// pass through a chunk before the rank continues with the next one, so that each stage's gradients
// are complete early; backwards do the same, from the last chunk. Microbatches ascend in both
// directions, because gradients are summed in a single order.
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  const int p = shape.ranks, v = shape.stages() / p;
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank) {
    for (int chunk = 0; chunk < v; ++chunk)
      for (int m = 0; m < shape.microbatches; ++m)
        rows[rank].push_back({Kind::F, chunk * p + rank, m});
    for (int chunk = v - 1; chunk >= 0; --chunk)
      for (int m = 0; m < shape.microbatches; ++m)
        rows[rank].push_back({Kind::B, chunk * p + rank, m});
  }
  return rows;
}

}  // namespace

Schedule schedule_looped_bfs() {
  return {.generate = generate,
          .chunks = {.default_value = 2},
          .about = "all microbatches through one chunk after another (Lamy-Poirier 2023)",
          .bubble = {"(p-1)/(v m) if m >= p",
                     [](int p, int m, int v) { return claim(m >= p, (p - 1.0) / (v * m)); }},
          .peak = {"v m", [](int, int m, int v) { return claim(true, v * m); }}};
}

}  // namespace concertina
