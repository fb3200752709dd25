// 1F1B (PipeDream-Flush, Narayanan et al. 2021, figure 4 top): after p - 1 - s warm-up forwards,
// stage s alternates between one forward and one backward, and saves min(m, p - s) microbatches.
#include <algorithm>

#include "parallel/generate/building_block.h"
#include "parallel/generate/interleave.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  return place_stages(shape, one_f_one_b(shape.stages(), shape.microbatches, 1, Kind::B));
}

}  // namespace

Schedule schedule_1f1b() {
  return {.generate = generate,
          .any_layout = true,
          .about = "alternates between one forward and one backward (Narayanan et al. 2021)",
          .bubble = {"(p-1)/m", [](int p, int m, int v) { return claim(v == 1, (p - 1.0) / m); }},
          .peak = {"min(m, p)", [](int p, int m, int v) { return claim(v == 1, std::min(m, p)); }}};
}

}  // namespace concertina
