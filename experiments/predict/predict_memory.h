// Predicts the memory of every rank of a run without starting it, and gives advice if it would not
// fit. Invariant: the values are those of StepEngine::memory() in a run. Ranks with equal memory
// share one engine, so that large worlds stay cheap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "experiments/run/trainer.h"

namespace concertina {

/// The memory by rank, with `threads` threads each. Allocates no tensors. `largest` receives, from
/// each group of ranks that differ only in their parts of buckets, the rank that needs the most;
/// one of these ranks needs the most for any parallel.recompute.
std::vector<RankMemory> predict_memory(const RunConfig& config, const Job& job,
                                       const Assignment& assignment, int threads,
                                       std::vector<int>* largest = nullptr);

/// The memory of a single rank.
RankMemory predict_memory_of(int rank, const RunConfig& config, const Job& job,
                             const Assignment& assignment, int threads);

/// The largest memory total among these ranks.
std::size_t largest_total(const std::vector<int>& ranks, const RunConfig& config, const Job& job,
                          const Assignment& assignment, int threads);

/// Bytes besides RankMemory that the largest rank needs to save its state.
struct SaveMemory {
  std::uint64_t copy = 0;       // from which a checkpoint is written during steps
  std::uint64_t snapshots = 0;  // in /dev/shm, both generations, under `concertina run`
};
SaveMemory predict_save_memory(const RunConfig& config, const Job& job,
                               const Assignment& assignment);

/// The largest total of any rank.
std::size_t largest_total(const std::vector<RankMemory>& ranks);

/// Names other layouts with the same world size, or also with smaller microbatches, whose largest
/// rank needs at most `available` bytes; if there are none, the smallest layout.
std::string what_fits(const RunConfig& config, int world, int threads, std::size_t available);

/// Warnings, with what_fits(), unless all ranks together fit in the free memory of `machine`.
/// `memory`: predict_memory() of the run, by rank.
std::vector<std::string> memory_advice(const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       const MemoryBytes& machine);

// Checks whether ranks that share a device fit on it (memory_check.cc): if one rank lacks memory,
// all throw the same error before anything is allocated.

/// Throws Error{bad_input} on all ranks if the engines of ranks that share a device need more
/// memory than it has free; the error names what each needs and layouts that would fit. `shared`:
/// bytes that the ranks of a host use together, counted only if tensors are in host memory as well.
/// Must be called before Trainer::start(). Collective.
void require_memory(Trainer& trainer, int threads, std::size_t shared = 0);

/// Bytes that this rank could still allocate: its share of the free memory of its device. nullopt
/// if unknown. Collective.
std::optional<std::size_t> free_for_rank(Trainer& trainer);

/// Like require_memory(), but for a change to `next`, during and after the move of its state;
/// `trainer` must have started, and is unchanged if this throws. Collective.
void require_memory_for(const Assignment& next, Trainer& trainer, int threads);

}  // namespace concertina
