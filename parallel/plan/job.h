// The facts of a run that never change, whoever does what.
// Invariant: a pure value; equal jobs and seeds give equal bits under any Assignment.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

struct Job {
  ModelSpec model;
  int microbatches = 1;    // of a batch; a step trains on one, unless its Assignment has more
  int leaves = 1;          // of a batch's gradient sum (parallel/plan/reduction_tree.h)
  std::uint64_t seed = 0;  // of what is random in a step
  /// Frozen units may train again: their optimizer state stays until then.
  bool keeps_frozen_state = false;
  /// The state keeps a snapshot of the weights beside the optimizer's tensors.
  bool keeps_reference = false;
  /// The optimizer updates whole tensors (Optimizer::whole_tensors): each has one owner.
  bool whole_tensors = false;
  /// Operations of an update in products (Optimizer::update_flops), of each parameter of each unit;
  /// empty: there are none.
  std::vector<std::vector<double>> update_flops{};

  int units() const { return static_cast<int>(model.units.size()); }
  /// Samples of a batch.
  std::int64_t batch() const { return microbatches * model.samples; }
};

}  // namespace concertina
