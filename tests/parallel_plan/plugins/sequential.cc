// Passes one microbatch at a time through the whole pipeline: the slowest possible schedule.
#include "parallel/generate/interleave.h"

namespace concertina {
namespace {

Rows generate(const PipelineShape& shape) {
  Rows rows(shape.stages());
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int m = 0; m < shape.microbatches; ++m) {
      rows[stage].push_back({Kind::F, stage, m});
      rows[stage].push_back({Kind::B, stage, m});
    }
  }
  return place_stages(shape, std::move(rows));
}

std::optional<Claim> peak(int, int, int v) {
  return Claim{static_cast<double>(v)};
}

}  // namespace

Schedule schedule_sequential() {
  return {.generate = generate,
          .any_layout = true,
          .about = "one microbatch at a time",
          .peak = {"v", peak}};
}

}  // namespace concertina
