// GPipe (Huang et al. 2019, figure 2c): all forwards, then all backwards, in ascending order.
#include "parallel/generate/interleave.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  Rows rows(shape.stages());
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int m = 0; m < shape.microbatches; ++m) rows[stage].push_back({Kind::F, stage, m});
    for (int m = 0; m < shape.microbatches; ++m) rows[stage].push_back({Kind::B, stage, m});
  }
  return place_stages(shape, std::move(rows));
}

}  // namespace

Schedule schedule_gpipe() {
  return {.generate = generate,
          .any_layout = true,
          .about = "all forwards, then all backwards (Huang et al. 2019)",
          .bubble = {"(p-1)/m", [](int p, int m, int v) { return claim(v == 1, (p - 1.0) / m); }},
          .peak = {"v m", [](int, int m, int v) { return claim(true, v * m); }}};
}

}  // namespace concertina
