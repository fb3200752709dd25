// A single replica for examining a schedule: one unit per stage, no model.
// Invariant: pure.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/plan/layout.h"

namespace concertina {

/// Throws Error{bad_input} if the plan would have too many actions or need more than `free_bytes`.
void require_room(std::int64_t stages, std::int64_t microbatches, double free_bytes);

/// Leaves of the gradient sum over `microbatches`: `asked` (--leaves), or the default of `train`.
int leaves_of(std::optional<int> asked, int microbatches);

struct OneReplica {
  Layout layout;
  int leaves = 1;
};
/// Returns a replica on this many ranks. Throws Error{bad_input} if none fits.
OneReplica one_replica(int ranks, int microbatches, std::optional<int> leaves,
                       const Folding& folding);

}  // namespace concertina
