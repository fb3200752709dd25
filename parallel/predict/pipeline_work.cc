#include "parallel/predict/pipeline_work.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/index.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

int ranks_of_host(const PlanProblem& problem, const PlanCandidate& candidate) {
  return problem.machine.ranks_per_host > 0 ? problem.machine.ranks_per_host : candidate.world();
}

/// The share of a host's network that a group can use while `sharing` groups of it send.
double host_share(const PlanProblem& problem, const PlanCandidate& candidate, int sharing) {
  const double nics = std::max(1, problem.machine.nics_per_host);
  const double own = std::max(1.0, candidate.tp * nics / ranks_of_host(problem, candidate)) / nics;
  return std::min({1.0, own, 1.0 / sharing});
}

/// From a rank of the pipeline to the one `next` places on.
LinkCosts boundary_link(const PlanProblem& problem, const PlanCandidate& candidate, int rank,
                        int next) {
  const MachineModel& machine = problem.machine;
  const int host = ranks_of_host(problem, candidate);
  const int stride = candidate.tp * (problem.software.pipeline_inside ? 1 : candidate.dp);
  const bool remote = rank * stride / host != next * stride / host;
  LinkCosts link = remote ? machine.remote : machine.local;
  link.eager_bytes = LinkCosts{}.eager_bytes;
  if (!remote) return link;
  // Each device sends its part of the activations; the parts meet within the receiving group.
  const int sharing =
      stride >= host || !problem.software.pipeline_inside ? std::max(1, host / candidate.tp) : 1;
  double seconds = over(1, link.bandwidth * host_share(problem, candidate, sharing));
  seconds += over(static_cast<double>(candidate.tp - 1) / candidate.tp, local_rate(machine));
  link.bandwidth = seconds > 0 ? 1 / seconds : kNoLimit;
  return link;
}

/// A ring over the replicas passes so many bytes per second through one device of the group.
double replica_rate(const PlanProblem& problem, const PlanCandidate& candidate) {
  const int host = ranks_of_host(problem, candidate);
  const int stride = candidate.tp * (problem.software.pipeline_inside ? candidate.pp : 1);
  const int near = std::clamp(host / stride, 1, candidate.dp);  // replicas on one host
  if (near == candidate.dp && candidate.dp * stride <= host) return local_rate(problem.machine);
  // The ring leaves a host once, whatever it has of its members; others' rings do so too.
  const int rings = std::max(1, host / near);
  const double nics = std::max(1, problem.machine.nics_per_host);
  const double share = std::min(1.0 / rings, std::max(1.0, near * nics / host) / nics);
  return std::min(local_rate(problem.machine), problem.machine.remote.bandwidth * share);
}

/// The ranks that hold a shared tensor, ascending.
std::set<int> holders(const SharedTensor& tensor, const std::vector<UnitRange>& cuts,
                      Placement placement, int pp) {
  std::set<int> ranks;
  for (const int use : tensor.uses) {
    const auto stage = std::ranges::upper_bound(cuts, use, {}, &UnitRange::first) - cuts.begin();
    ranks.insert(rank_of_stage(placement, static_cast<int>(stage) - 1, pp));
  }
  return ranks;
}

/// Gradients of a unit leave as soon as they are there: those of the first unit come last.
double exposed_reduction(double seconds, double last_backward, int units) {
  return std::max(seconds / units, seconds - last_backward * (units - 1.0) / units);
}

std::vector<RankOnce> once_per_step(const PlanProblem& problem, const PlanCandidate& candidate,
                                    const PipelineWork& work) {
  const Software& software = problem.software;
  const double gradient = problem.bytes().gradient;
  // This program gathers fp32 weights; others those that they compute with.
  const double gathered = std::min(problem.bytes().weight, 4.0);
  const double per_parameter = (candidate.dp - 1.0) / candidate.dp;
  const double rate = replica_rate(problem, candidate);
  std::vector<RankOnce> ranks;
  for (const RankShare& share : work.shares) {
    const StageCosts& lowest = work.stages[ranks.size()];  // a rank's first stage has its number
    const double ring = over(share.parameters * per_parameter, rate);
    RankOnce once{.reduction = ring * gradient};
    if (software.overlaps)
      once.reduction = exposed_reduction(once.reduction, lowest.input + lowest.weight, share.units);
    (software.sharded ? once.gather : once.reduction) +=
        ring * (software.sharded ? gathered : gradient);
    once.reduction += share.exchange;
    once.update =
        share.parameters / (software.sharded ? candidate.dp : 1) * update_seconds(problem.machine);
    ranks.push_back(once);
  }
  return ranks;
}

/// Shared tensors: what their holders have of them, and the exchange of their gradients.
void add_shared(const PlanProblem& problem, const PlanCandidate& candidate, const ModelWork& model,
                const std::vector<UnitRange>& cuts, PipelineWork& work) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  for (const SharedTensor& tensor : model.shared) {
    const std::set<int> ranks = holders(tensor, cuts, placement, candidate.pp);
    const LinkCosts link = boundary_link(problem, candidate, *ranks.begin(), *ranks.rbegin());
    const double bytes = tensor.elements * candidate.tp * problem.bytes().gradient;
    for (const int rank : ranks) {
      work.shares[at(rank)].parameters += tensor.elements;
      if (ranks.size() > 1) work.shares[at(rank)].exchange += over(bytes, link.bandwidth);
    }
  }
}

}  // namespace

PipelineWork pipeline_work(const PlanProblem& problem, const PlanCandidate& candidate,
                           WorkTable& table) {
  const ModelWork& model = table.of(candidate);
  const std::vector<UnitRange>& cuts = table.cuts(candidate);
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  PipelineWork work;
  work.shares.resize(at(candidate.pp));
  work.boundary_bytes = static_cast<double>(problem.model.boundary_bytes) * candidate.samples;
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    const UnitRange& cut = cuts[at(stage)];
    const UnitWork sum = model.sum(cut);
    work.stages.push_back({.forward = sum.forward, .input = sum.input, .weight = sum.weight});
    work.bytes.push_back({sum.saved - model.input[at(cut.first)],
                          sum.grads - (stage > 0 ? work.boundary_bytes : 0)});
    RankShare& share = work.shares[at(rank_of_stage(placement, stage, candidate.pp))];
    share.parameters += sum.parameters;
    share.units += cut.last - cut.first;
    share.scratch = std::max(share.scratch, *std::max_element(model.scratch.begin() + cut.first,
                                                              model.scratch.begin() + cut.last));
  }
  const UnitWork& all = model.before.back();
  work.again = all.again;
  work.group = all.group;
  for (int rank = 0; rank < candidate.pp; ++rank)
    work.links.push_back(boundary_link(problem, candidate, rank, (rank + 1) % candidate.pp));
  add_shared(problem, candidate, model, cuts, work);
  work.once = once_per_step(problem, candidate, work);
  return work;
}

}  // namespace concertina
