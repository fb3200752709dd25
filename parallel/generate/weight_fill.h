// Zero-bubble scheduling: weight gradients go where a rank would wait (Qi et al. 2023, section 2).
// Invariant: forwards and input gradients keep the order that they are given, but for forwards that
// `early_forwards` lets go ahead.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

struct WeightFill {
  /// Microbatches of stages that a rank may save before a W goes ahead of the next F.
  int limit = 1;
  /// A rank that has nothing to do starts the next microbatch on its first stage, within `limit`.
  bool early_forwards = false;
};

/// `rows`: every F and I of the shape, in an order that cannot deadlock. Adds each W: where the
/// next action of a row is not ready, or is an F and the row is at its limit, the oldest W that is
/// left runs instead. The result keeps the limit if `rows` do before any W is added.
Rows fill_weights(const PipelineShape& shape, const Rows& rows, const WeightFill& options);

}  // namespace concertina
