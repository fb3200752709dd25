// Basic orders for schedules: 1F1B, and two chunks per rank in a V, built by repeating the passes
// of one microbatch (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", sections 3
// and 4). Invariant: passes of different microbatches never need a rank at the same time, so in the
// steady state every rank is busy and saves (lifespan of its block / interval) microbatches.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// By stage: stage s runs lead * (p - 1 - s) forwards ahead. Backwards are of kind `backward` (B,
/// or I if fill_weights() adds W).
Rows one_f_one_b(int stages, int microbatches, int lead, Kind backward);

/// Time steps between the same pass on neighboring stages, with F = I = W = 1: first for F of the
/// chunk that goes down the ranks and of the one that comes back up, then for I of both. All ranks
/// need the same memory if forward_down + backward_down = forward_up + backward_up = d; a rank then
/// saves about d p / 3 stage activations.
struct BuildingBlock {
  int forward_down = 1, forward_up = 1, backward_up = 1, backward_down = 1;
};

/// Returns F and I of every rank, with the block repeated every 6 steps (F, I and W of two chunks).
/// `shape` places two chunks in a wave. At the turns of the V, the block waits as briefly as
/// possible without collisions on any rank.
Rows repeat_block(const PipelineShape& shape, const BuildingBlock& block);

}  // namespace concertina
