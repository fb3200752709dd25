// What every rank of a run will need, without any rank: the memory of `concertina plan`.
// Invariant: the figures are StepEngine::memory() itself, as a run takes it; ranks that differ in
// nothing that memory depends on share one engine, so that large worlds stay cheap.
#pragma once

#include <vector>

#include "experiments/config/config.h"
#include "parallel/runtime/step_engine.h"

namespace concertina {

/// The memory by rank, with `threads` threads each. Takes none for tensors.
std::vector<RankMemory> predict_memory(const RunConfig& config, const Job& job,
                                       const Assignment& assignment, int threads);

/// The memory of one rank by itself.
RankMemory predict_memory_of(int rank, const RunConfig& config, const Job& job,
                             const Assignment& assignment, int threads);

/// The largest total of any rank.
std::size_t largest_total(const std::vector<RankMemory>& ranks);

}  // namespace concertina
