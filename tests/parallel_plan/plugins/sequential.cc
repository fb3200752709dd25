// One microbatch after the other through the whole pipeline: the slowest schedule there is.
#include "parallel/interleave.h"

namespace concertina {

std::vector<std::vector<Action>> schedule_sequential(const PipelineShape& shape) {
  std::vector<std::vector<Action>> rows(shape.stages());
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int m = 0; m < shape.microbatches; ++m) {
      rows[stage].push_back({Kind::F, stage, m});
      rows[stage].push_back({Kind::I, stage, m});
      rows[stage].push_back({Kind::W, stage, m});
    }
  }
  return place_stages(shape, std::move(rows));
}

}  // namespace concertina
