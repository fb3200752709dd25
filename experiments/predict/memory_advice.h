// What to change where a run does not fit into memory.
// Invariant: whatever it proposes was planned, and fits.
#pragma once

#include <string>
#include <vector>

#include "experiments/machine/machine.h"
#include "experiments/predict/predict_memory.h"

namespace concertina {

/// Other layouts of the same world size, else smaller microbatches, whose largest rank wants no
/// more than `available` bytes; else the smallest there is.
std::string what_fits(const RunConfig& config, int world, int threads, std::size_t available);

/// Warnings, none if all ranks together fit into what `machine` has free, with what_fits().
/// `memory`: predict_memory() of the run, by rank.
std::vector<std::string> memory_advice(const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       const MemoryBytes& machine);

}  // namespace concertina
