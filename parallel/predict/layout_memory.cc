#include "parallel/predict/layout_memory.h"

#include <algorithm>
#include <bit>

#include "core/index.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {
namespace {

/// Buffers in which a replica sums its gradients.
int gradient_buffers(const PlanProblem& problem, const PlanCandidate& candidate) {
  if (!problem.software.sums_by_tree) return 1;
  const int leaves = default_leaves(problem.batch / candidate.samples);
  const int own = leaves % candidate.dp == 0 ? leaves / candidate.dp : 1;
  return std::bit_width(static_cast<unsigned>(own));
}

/// All but the activations of a rank.
PlanMemory state_of(const PlanProblem& problem, const PlanCandidate& candidate, double parameters) {
  const Software& software = problem.software;
  const ParameterBytes& bytes = problem.bytes();
  const double received = software.received_bytes * (candidate.dp - 1.0) / candidate.dp;
  const double gradients = bytes.gradient * gradient_buffers(problem, candidate);
  return {.weights = parameters * (bytes.weight + gradients + received),
          .optimizer = parameters * bytes.optimizer / (software.sharded ? candidate.dp : 1),
          .reserved = problem.machine.device.reserved_bytes};
}

/// The memory of the fullest rank, whose activations are `activations(rank)` and its scratch.
template <class Activations>
PlanMemory largest_of(const PlanProblem& problem, const PlanCandidate& candidate,
                      const PipelineWork& work, const Activations& activations) {
  PlanMemory largest;
  for (int rank = 0; rank < candidate.pp; ++rank) {
    const RankShare& share = work.shares[at(rank)];
    PlanMemory mine = state_of(problem, candidate, share.parameters);
    mine.activations = share.scratch + activations(rank);
    if (mine.total() > largest.total()) largest = mine;
  }
  return largest;
}

}  // namespace

PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<RowMemory>& rows) {
  return largest_of(problem, candidate, work, [&](int rank) {
    const RowMemory& row = rows[at(rank)];
    double bytes = row.boundaries() * work.boundary_bytes;
    for (const StageSlots& slots : row.stages)
      bytes += slots.saved * work.bytes[at(slots.stage)].saved +
               slots.grads * work.bytes[at(slots.stage)].grads;
    return bytes;
  });
}

PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<int>& peaks) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  std::vector<double> kept(at(candidate.pp));  // of one microbatch on all stages of the rank
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    const int inner = (stage > 0 ? 1 : 0) + (stage + 1 < candidate.stages() ? 1 : 0);
    kept[at(rank_of_stage(placement, stage, candidate.pp))] +=
        work.bytes[at(stage)].saved + inner * work.boundary_bytes;
  }
  return largest_of(problem, candidate, work,
                    [&](int rank) { return peaks[at(rank)] * kept[at(rank)] / candidate.chunks; });
}

std::vector<int> promised_peaks(const PlanCandidate& candidate, int microbatches) {
  const int p = candidate.pp;
  std::vector<int> peaks;
  const auto claim =
      find_schedule(candidate.schedule).value.peak.at(p, microbatches, candidate.chunks);
  if (!claim) return peaks;
  const int most = static_cast<int>(claim->value);
  for (int rank = 0; rank < p; ++rank)
    peaks.push_back(candidate.schedule == "1f1b" ? std::min(microbatches, p - rank) : most);
  return peaks;
}

}  // namespace concertina
