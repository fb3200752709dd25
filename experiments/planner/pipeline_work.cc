#include "experiments/planner/pipeline_work.h"

#include <algorithm>
#include <limits>

#include "core/index.h"
#include "experiments/planner/memory_model.h"
#include "experiments/planner/rates.h"
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

/// What each rank of a pipeline holds, on one device of its group.
struct RankShare {
  double parameters = 0;
  int layers = 0;
};

std::vector<RankShare> rank_shares(const PlanProblem& problem, const PlanCandidate& candidate,
                                   const std::vector<int>& layers, Placement placement) {
  std::vector<RankShare> shares(at(candidate.pp));
  const double layer = layer_parameters(problem.config.model, candidate.tp);
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    RankShare& share = shares[at(rank_of_stage(placement, stage, candidate.pp))];
    share.parameters += layers[at(stage)] * layer;
    share.layers += layers[at(stage)];
  }
  const int head = rank_of_stage(placement, candidate.stages() - 1, candidate.pp);
  const double table = embedding_parameters(problem.config.model, candidate.tp);
  shares[0].parameters += table;
  if (head != 0) shares[at(head)].parameters += table;
  return shares;
}

/// Gradients of a layer leave as soon as they are there: those of the first layer come last.
double exposed_reduction(double seconds, double last_backward, int layers) {
  const int units = std::max(1, layers);
  return std::max(seconds / units, seconds - last_backward * (units - 1.0) / units);
}

std::vector<RankOnce> once_per_step(const PlanProblem& problem, const PlanCandidate& candidate,
                                    const std::vector<int>& layers, const PipelineWork& work) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  const Software& software = problem.software;
  const bool half = is_16_bit(problem.config);
  const double gradient = half ? software.gradient_bytes_16 : software.gradient_bytes_32;
  // This program gathers fp32 weights; others those that they compute with.
  const double gathered = half && software.weight_bytes_16 < 4 ? 2 : 4;
  const double per_parameter = (candidate.dp - 1.0) / candidate.dp;
  const double rate = replica_rate(problem, candidate);
  const double update_s = problem.machine.update_s_per_element > 0
                              ? problem.machine.update_s_per_element
                              : over(30, problem.machine.device.memory_bytes_per_s);
  std::vector<RankOnce> ranks;
  for (const RankShare& share : rank_shares(problem, candidate, layers, placement)) {
    const StageCosts& lowest = work.stages[ranks.size()];  // a rank's first stage has its number
    const double ring = over(share.parameters * per_parameter, rate);
    RankOnce once{.reduction = ring * gradient};
    if (software.overlaps)
      once.reduction =
          exposed_reduction(once.reduction, lowest.input + lowest.weight, share.layers);
    if (software.sharded)
      once.gather = ring * gathered;
    else
      once.reduction += ring * gradient;
    once.update = share.parameters / (software.sharded ? candidate.dp : 1) * update_s;
    ranks.push_back(once);
  }
  // The gradients of the tied table, from the first rank and from the last one.
  const int head = rank_of_stage(placement, candidate.stages() - 1, candidate.pp);
  const double table = embedding_parameters(problem.config.model, candidate.tp) * candidate.tp;
  if (head != 0) {
    const double seconds =
        over(table * gradient, boundary_link(problem, candidate, 0, head).bandwidth);
    ranks.front().reduction += seconds;
    ranks[at(head)].reduction += seconds;
  }
  return ranks;
}

}  // namespace

PipelineWork pipeline_work(const PlanProblem& problem, const PlanCandidate& candidate) {
  const std::vector<int> layers = layers_of(problem, candidate);
  const PassSeconds layer =
      layer_seconds(problem, candidate.tp, candidate.samples, candidate.recompute);
  const PassSeconds head = head_seconds(problem, candidate.tp, candidate.samples);
  PipelineWork work;
  for (const int count : layers)
    work.stages.push_back({.forward = count * layer.forward,
                           .input = count * layer.input,
                           .weight = count * layer.weight});
  StageCosts& last = work.stages.back();
  last.forward += head.forward;
  last.input += head.input;
  last.weight += head.weight;
  work.again = problem.config.model.layers * layer.again;
  work.group = problem.config.model.layers * layer.group;
  work.boundary_bytes = boundary_bytes(problem.config, candidate.samples);
  for (int rank = 0; rank < candidate.pp; ++rank)
    work.links.push_back(boundary_link(problem, candidate, rank, (rank + 1) % candidate.pp));
  work.once = once_per_step(problem, candidate, layers, work);
  return work;
}

}  // namespace concertina
