// 1F1B (PipeDream-Flush, Narayanan et al. 2021, figure 4 top): after p - 1 - s forwards to warm up,
// stage s alternates one forward and one backward.
// Idle over ideal time: (p - 1) / m, as GPipe. Saves min(m, p - s) microbatches on stage s.
#include <algorithm>

#include "parallel/interleave.h"

namespace concertina {

std::vector<std::vector<Action>> schedule_1f1b(const PipelineShape& shape) {
  std::vector<std::vector<Action>> rows(shape.stages());
  for (int stage = 0; stage < shape.stages(); ++stage) {
    const int ahead = std::min(shape.microbatches, shape.stages() - 1 - stage);
    int forward = 0;
    while (forward < ahead) rows[stage].push_back({Kind::F, stage, forward++});
    for (int backward = 0; backward < shape.microbatches; ++backward) {
      if (forward < shape.microbatches) rows[stage].push_back({Kind::F, stage, forward++});
      rows[stage].push_back({Kind::B, stage, backward});
    }
  }
  return place_stages(shape, std::move(rows));
}

}  // namespace concertina
