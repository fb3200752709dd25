// Which rank holds which units and which microbatches.
// Invariant: a valid Layout covers every unit once in each pipeline and every microbatch once.
#pragma once

#include <string>
#include <vector>

#include "core/model_spec.h"

namespace concertina {

/// Units [first_unit, last_unit) on `rank`. A rank may hold several stages of one pipeline.
struct StagePlacement {
  int rank = 0, first_unit = 0, last_unit = 0;
  bool operator==(const StagePlacement&) const = default;
};

/// Microbatches [first_microbatch, last_microbatch) of the step flow through `stages`.
struct Pipeline {
  std::vector<StagePlacement> stages;
  int first_microbatch = 0, last_microbatch = 0;
  int microbatches() const { return last_microbatch - first_microbatch; }
  bool operator==(const Pipeline&) const = default;
};

struct Layout {
  std::vector<Pipeline> pipelines;
  bool operator==(const Layout&) const = default;

  /// Stages are numbered through all pipelines: stage s of pipeline p is first_stage(p) + s.
  int first_stage(int pipeline) const;
  int stage_count() const;
  int pipeline_of(int stage) const;
  const StagePlacement& stage(int stage) const;
  /// Ranks that hold any of `units`, ascending, each once.
  std::vector<int> holders(const std::vector<int>& units) const;
};

}  // namespace concertina
