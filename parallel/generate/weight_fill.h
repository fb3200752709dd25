// Zero-bubble scheduling: weight gradients fill the idle time of ranks (Qi et al. 2023, section 2).
// Invariant: forwards and input gradients keep their order, except for forwards that
// `early_forwards` moves ahead.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

struct WeightFill {
  /// Number of stage activations that a rank may save before a W precedes the next F.
  int limit = 1;
  /// Whether an idle rank starts the next microbatch on its first stage early, within `limit`.
  bool early_forwards = false;
};

/// `rows` contains every F and I of the shape, in an order that cannot deadlock. Adds each W: if
/// the next action of a row is not ready, or is an F while the row is at its limit, the oldest
/// remaining W runs instead. The result respects the limit if `rows` does so without W.
Rows fill_weights(const PipelineShape& shape, const Rows& rows, const WeightFill& options);

}  // namespace concertina
