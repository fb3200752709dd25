// Interleaved 1F1B (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", section 2.2.2 and figure 4 bottom): v chunks per rank; p
// microbatches at a time pass through a chunk before the rank continues with the next one. Rank r
// runs 2 (p - 1 - r) + (v - 1) p forwards ahead, then alternates. Published for m % p == 0. Any
// other m uses the order for the next multiple of p without the surplus microbatches.
#include <algorithm>

#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

int rounded_up(int m, int p) {
  return (m + p - 1) / p * p;
}

/// The n-th pass of rank `rank`: groups of p microbatches, each through all chunks.
Action pass(Kind kind, int n, int rank, int p, int v) {
  const int chunk = n / p % v;
  return {kind, (kind == Kind::F ? chunk : v - 1 - chunk) * p + rank, n / (p * v) * p + n % p};
}

Rows generate(const PipelineShape& shape) {
  const int p = shape.ranks, v = shape.stages() / p;
  const int passes = rounded_up(shape.microbatches, p) * v;
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank) {
    const auto add = [&](Kind kind, int n) {
      const Action action = pass(kind, n, rank, p, v);
      if (action.microbatch < shape.microbatches) rows[rank].push_back(action);
    };
    const int ahead = std::min(passes, (v > 1 ? 2 : 1) * (p - 1 - rank) + (v - 1) * p);
    int forward = 0;
    while (forward < ahead) add(Kind::F, forward++);
    for (int n = 0; n < passes; ++n) {
      if (forward < passes) add(Kind::F, forward++);
      add(Kind::B, n);
    }
  }
  return rows;
}

}  // namespace

Schedule schedule_interleaved_1f1b() {
  return {.generate = generate,
          .chunks = {.default_value = 2},
          .about = "1f1b over v chunks per rank (Narayanan et al. 2021)",
          .bubble = {"(p-1)/(v m) if p divides m",
                     [](int p, int m, int v) { return claim(m % p == 0, (p - 1.0) / (v * m)); }},
          .peak = {"min(v m, (v+1) p - 1)", [](int p, int m, int v) {
                     return claim(true, std::min(v * m, v > 1 ? (v + 1) * p - 1 : p), m % p == 0);
                   }}};
}

}  // namespace concertina
