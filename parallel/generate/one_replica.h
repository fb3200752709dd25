// The replica that a schedule is looked at on by itself: one unit a stage, no model.
// Invariant: pure.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/plan/layout.h"

namespace concertina {

/// Throws Error{bad_input} if so many microbatches on so many stages are more than a plan may have,
/// or take more than `free_bytes` to prove.
void require_room(std::int64_t stages, std::int64_t microbatches, double free_bytes);

/// Leaves of the gradient sum over `microbatches`: as asked for (--leaves), else as `train` has
/// them.
int leaves_of(std::optional<int> asked, int microbatches);

struct OneReplica {
  Layout layout;
  int leaves = 1;
};
/// A replica on so many ranks. Throws Error{bad_input} if none fits.
OneReplica one_replica(int ranks, int microbatches, std::optional<int> leaves,
                       const Folding& folding);

}  // namespace concertina
