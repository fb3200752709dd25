// The memory of every rank of a run, without any rank, and advice where it does not fit.
// Invariant: the figures are StepEngine::memory() itself, as a run takes it; ranks that differ in
// nothing that memory depends on share one engine, so that large worlds stay cheap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "experiments/run/trainer.h"

namespace concertina {

/// The memory by rank, with `threads` threads each. Takes none for tensors. `largest`: appends a
/// rank for all those that differ in their parts of buckets alone, the one that takes most: one of
/// these is the largest rank whatever parallel.recompute is.
std::vector<RankMemory> predict_memory(const RunConfig& config, const Job& job,
                                       const Assignment& assignment, int threads,
                                       std::vector<int>* largest = nullptr);

/// The memory of one rank by itself.
RankMemory predict_memory_of(int rank, const RunConfig& config, const Job& job,
                             const Assignment& assignment, int threads);

/// The largest total of these ranks.
std::size_t largest_total(const std::vector<int>& ranks, const RunConfig& config, const Job& job,
                          const Assignment& assignment, int threads);

/// Bytes beside RankMemory that the largest rank takes for its state to be saved.
struct SaveMemory {
  std::uint64_t copy = 0;       // that a checkpoint is written from beside steps
  std::uint64_t snapshots = 0;  // in /dev/shm, both generations, under `concertina run`
};
SaveMemory predict_save_memory(const RunConfig& config, const Job& job,
                               const Assignment& assignment);

/// The largest total of any rank.
std::size_t largest_total(const std::vector<RankMemory>& ranks);

/// Other layouts of the same world size, else smaller microbatches, whose largest rank wants no
/// more than `available` bytes; else the smallest there is.
std::string what_fits(const RunConfig& config, int world, int threads, std::size_t available);

/// Warnings, none if all ranks together fit into what `machine` has free, with what_fits().
/// `memory`: predict_memory() of the run, by rank.
std::vector<std::string> memory_advice(const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       const MemoryBytes& machine);

// Whether the ranks that share a device find room for what they need there (memory_check.cc): what
// one rank lacks is the same error on all, before anything is allocated.

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
