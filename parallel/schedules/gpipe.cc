// GPipe (Huang et al. 2019, figure 2c): all forwards, then all backwards, in ascending order.
// Idle over ideal time: (p - 1) / m. Saves the activations of all m microbatches.
#include "parallel/interleave.h"

namespace concertina {

std::vector<std::vector<Action>> schedule_gpipe(const PipelineShape& shape) {
  std::vector<std::vector<Action>> rows(shape.stages());
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int m = 0; m < shape.microbatches; ++m) rows[stage].push_back({Kind::F, stage, m});
    for (int m = 0; m < shape.microbatches; ++m) rows[stage].push_back({Kind::B, stage, m});
  }
  return place_stages(shape, std::move(rows));
}

}  // namespace concertina
