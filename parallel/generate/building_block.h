// Orders that schedules are made of: 1F1B, and two chunks per rank in a V, made by repeating one
// microbatch's passes (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", sections 3
// and 4). Invariant: passes of different microbatches never want one rank at one time, so in the
// steady state every rank is busy, and saves its building block's lifespan over the interval.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// By stage: stage s runs lead * (p - 1 - s) forwards ahead of what it needs; backwards are of kind
/// `backward` (B, or I where fill_weights() adds W).
Rows one_f_one_b(int stages, int microbatches, int lead, Kind backward);

/// Steps of time between the same pass on neighbouring stages, with F = I = W = 1: of F of the
/// chunk that goes down the ranks and of the one that comes back up, then of I of the same two.
/// Forth and back give a rank the same memory whatever its place if forward_down + backward_down
/// = forward_up + backward_up = d; then it saves about d p / 3 microbatches of stages.
struct BuildingBlock {
  int forward_down = 1, forward_up = 1, backward_up = 1, backward_down = 1;
};

/// F and I of every rank in the order of the block repeated every 6 steps (F, I and W of two
/// chunks). `shape`: two chunks in a wave. Where the V turns, the block waits for as short as the
/// passes of any rank need to stay apart.
Rows repeat_block(const PipelineShape& shape, const BuildingBlock& block);

}  // namespace concertina
