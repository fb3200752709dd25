// Whether the ranks that share a device find room for what they need there.
// Invariant: what one rank lacks is the same error on all, before anything is allocated.
#pragma once

#include <optional>

#include "experiments/run/trainer.h"

namespace concertina {

/// Throws Error{bad_input}, on all ranks, if the engines of the ranks that share a device want more
/// than it has free: what each wants, and what would fit. `shared`: bytes of the host's memory that
/// its ranks take together, if tensors are there too. Before Trainer::start(). Collective.
void require_memory(Trainer& trainer, int threads, std::size_t shared = 0);

/// Bytes that this rank could take more: its part of what is free on its device, shared with the
/// other ranks there. Nothing where that is not known. Collective.
std::optional<std::size_t> free_for_rank(Trainer& trainer);

/// The same of a change to `next`, while and after its state moves; `trainer` has started, and goes
/// on as it was where this throws. Collective.
void require_memory_for(const Assignment& next, Trainer& trainer, int threads);

}  // namespace concertina
