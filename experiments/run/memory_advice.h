// What to change where a run does not fit into memory.
// Invariant: whatever it proposes was planned, and fits.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/predict_memory.h"

namespace concertina {

/// Warnings, none if all ranks together fit into `available` bytes. Names layouts of the same world
/// size, else smaller microbatches, whose largest rank fits. `memory`: predict_memory(run, ...).
std::vector<std::string> memory_advice(const RunPlan& run, const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       std::size_t available);

}  // namespace concertina
