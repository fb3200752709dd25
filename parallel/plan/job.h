// The properties of a run that stay the same however its work is divided.
// Invariant: a pure value; equal jobs and seeds give bit-identical results under any Assignment.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

struct Job {
  ModelSpec model;
  int microbatches = 1;    // per batch; a step trains on one batch unless its Assignment has more
  int leaves = 1;          // leaves of a batch's gradient sum (parallel/plan/reduction_tree.h)
  std::uint64_t seed = 0;  // source of all randomness in a step
  /// Whether the optimizer state of frozen units is kept, because they may train again.
  bool keeps_frozen_state = false;
  /// Whether the state includes a snapshot of the weights, in addition to the optimizer's tensors.
  bool keeps_reference = false;
  /// Whether the optimizer updates whole tensors (Optimizer::whole_tensors), each with one owner.
  bool whole_tensors = false;
  /// FLOPs of matrix products in an update (Optimizer::update_flops), by unit and parameter; empty:
  /// none.
  std::vector<std::vector<double>> update_flops{};

  int units() const { return static_cast<int>(model.units.size()); }
  /// Samples per batch.
  std::int64_t batch() const { return microbatches * model.samples; }
};

}  // namespace concertina
