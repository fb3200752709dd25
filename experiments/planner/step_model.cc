#include "experiments/planner/step_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/index.h"
#include "experiments/planner/memory_model.h"
#include "parallel/generate/expand.h"
#include "parallel/generate/passes.h"

namespace concertina {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Bytes that a layer's forward pass reads and writes besides its products, of 16-bit activations:
/// s b h (22 + 28/tp) for two norms (4 + 4), two dropouts with their residual sums (7 + 7), GELU
/// with bias (16/tp) and the split and merge of heads (12/tp); with scores in memory 9 a s^2 b/tp
/// more: softmax reads and writes 4, dropout 5. A backward pass moves twice that.
double moved_bytes(const PlanProblem& problem, int tp, int samples) {
  const ModelSection& model = problem.config.model;
  const double rows = static_cast<double>(model.context) * samples;
  const double scores =
      problem.software.keeps_scores ? 9.0 * model.heads * model.context * rows / tp : 0;
  return (is_16_bit(problem.config) ? 1 : 2) * (rows * model.width * (22 + 28.0 / tp) + scores);
}

double over(double amount, double rate) {
  return rate > 0 && std::isfinite(rate) ? amount / rate : 0;
}

/// Bytes a second between devices of one host: in shared memory, the receiver's copy.
double local_rate(const MachineModel& machine) {
  const LinkCosts& local = machine.local;
  if (std::isfinite(local.bandwidth)) return local.bandwidth;
  return local.receive_cpu > 0 ? 1 / local.receive_cpu : kInf;
}

double element_bytes(const RunConfig& config) {
  return is_16_bit(config) ? 2 : 4;
}

double boundary_bytes(const RunConfig& config, int samples) {
  return element_bytes(config) * samples * config.model.context * config.model.width;
}

/// Two all-reduces, each a ring: 2 (tp-1)/tp of the activations past every device.
double group_seconds(const PlanProblem& problem, int tp, int samples) {
  if (tp == 1) return 0;
  const double bytes = 2 * boundary_bytes(problem.config, samples) * 2 * (tp - 1) / tp;
  return over(bytes, local_rate(problem.machine)) + 4 * (tp - 1) * problem.machine.local.latency;
}

/// Adding a microbatch's weight gradients to those before it: both are read, and both written.
double added_seconds(const PlanProblem& problem, double parameters) {
  const double sums = is_16_bit(problem.config) ? problem.software.gradient_bytes_16
                                                : problem.software.gradient_bytes_32;
  return over(parameters * 2 * (sums + element_bytes(problem.config)),
              problem.machine.device.memory_bytes_per_s);
}

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
  link.bandwidth = seconds > 0 ? 1 / seconds : kInf;
  return link;
}

/// Of a ring over the replicas: bytes a second that pass one device of the group.
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

}  // namespace

PassSeconds layer_seconds(const PlanProblem& problem, int tp, int samples, Recompute recompute) {
  const MachineModel& machine = problem.machine;
  const ForwardFlops flops = forward_flops(problem.config.model);
  const double rate = machine.flops_per_s * tp / samples;
  const double products = flops.products / rate, attention = flops.attention / rate;
  const double moved = over(moved_bytes(problem, tp, samples), machine.device.memory_bytes_per_s);
  const double group = group_seconds(problem, tp, samples);
  const double launch = machine.device.layer_s;
  PassSeconds pass;
  pass.forward = products + attention + moved + group + launch;
  pass.input = products + 2 * attention + 2 * moved + group + launch;
  pass.weight =
      products + launch + added_seconds(problem, layer_parameters(problem.config.model, tp));
  pass.group = 2 * group;
  if (recompute == Recompute::full) {
    pass.again = pass.forward;
    pass.group += group;
  } else if (recompute == Recompute::selective) {
    const ModelSection& model = problem.config.model;
    const double scores = 9.0 * model.heads * model.context * model.context * samples / tp;
    pass.again = attention + over(scores, machine.device.memory_bytes_per_s);
  }
  pass.input += pass.again;
  return pass;
}

/// The head's products, and its loss: logits of 16 and 32 bits written and read, forth and back.
PassSeconds head_seconds(const PlanProblem& problem, int tp, int samples) {
  const ModelSection& model = problem.config.model;
  const double product = forward_flops(model).head * samples / (problem.machine.flops_per_s * tp);
  const double rows = static_cast<double>(samples) * model.context;
  const double loss = over(16 * rows * model.vocab / tp, problem.machine.device.memory_bytes_per_s);
  return {.forward = product + loss,
          .input = product + loss,
          .weight = product + added_seconds(problem, embedding_parameters(model, tp))};
}

std::vector<int> layers_of(const PlanProblem& problem, const PlanCandidate& candidate) {
  const double layer =
      layer_seconds(problem, candidate.tp, candidate.samples, candidate.recompute).total();
  return layers_by_stage(problem.config.model.layers, candidate.stages(),
                         problem.software.equal_layers,
                         head_seconds(problem, candidate.tp, candidate.samples).total() / layer);
}

namespace {

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

namespace {

/// By rank: seconds of one microbatch on all of its stages.
std::vector<double> rank_seconds(const PlanCandidate& candidate, const PipelineWork& work) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  std::vector<double> seconds(at(candidate.pp));
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    const StageCosts& costs = work.stages[at(stage)];
    seconds[at(rank_of_stage(placement, stage, candidate.pp))] +=
        costs.forward + costs.input + costs.weight;
  }
  return seconds;
}

double largest_once(const PipelineWork& work) {
  double reduction = 0, rest = 0;
  for (const RankOnce& once : work.once) {
    reduction = std::max(reduction, once.reduction);
    rest = std::max(rest, once.update + once.gather);
  }
  return reduction + rest;
}

/// Without overlap a rank stands still while its messages pass: a microbatch from one to the other.
double blocked_seconds(const PipelineWork& work, int from, int to) {
  if (from == to) return 0;
  const int p = static_cast<int>(work.links.size());
  const LinkCosts& link = work.links[at(std::abs(from - to) == 1 ? std::min(from, to) : p - 1)];
  return link.latency + over(work.boundary_bytes, link.bandwidth);
}

}  // namespace

double least_seconds(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work) {
  const int m = candidate.microbatches(problem.config);
  const std::vector<double> seconds = rank_seconds(candidate, work);
  double least = 0, before = 0;
  for (int rank = 0; rank < candidate.pp; ++rank) {
    const RankOnce& once = work.once[at(rank)];
    // Stage `rank` is the first one of this rank under every placement.
    least = std::max(least, before + m * seconds[at(rank)] + once.update + once.gather);
    before += work.stages[at(rank)].forward;
  }
  return least;
}

double likely_seconds(const PlanProblem& problem, const PlanCandidate& candidate,
                      const PipelineWork& work) {
  const int m = candidate.microbatches(problem.config), p = candidate.pp;
  const std::vector<double> seconds = rank_seconds(candidate, work);
  const double most = *std::max_element(seconds.begin(), seconds.end());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / p;
  const auto claim = find_schedule(candidate.schedule).value.bubble.at(p, m, candidate.chunks);
  const double idle = claim ? claim->value : (p - 1.0) / m;
  double blocked = 0;
  if (!problem.software.overlaps && p > 1)
    blocked = 2.0 * m * candidate.chunks * blocked_seconds(work, 0, 1);
  return m * (most + idle * mean) + blocked + largest_once(work);
}

double simulated_actions(const PlanCandidate& candidate, int microbatches) {
  return static_cast<double>(candidate.stages()) * microbatches * (candidate.pp > 1 ? 7 : 3);
}

namespace {

Costs simulation_costs(const PlanProblem& problem, const PlanCandidate& candidate,
                       const PipelineWork& work, bool transfers, bool reductions) {
  Costs costs;
  costs.stages = work.stages;
  const int p = candidate.pp;
  if (transfers && p > 1) {
    costs.boundary_bytes = work.boundary_bytes;
    for (int rank = 0; rank < p; ++rank) {
      const int next = (rank + 1) % p;
      costs.pairs[{rank, next}] = costs.pairs[{next, rank}] = work.links[at(rank)];
    }
    if (!problem.software.overlaps) {
      // Whoever sends waits until it is sent, as part of what it has computed.
      const Placement placement = find_schedule(candidate.schedule).value.placement;
      for (int stage = 0; stage < candidate.stages(); ++stage) {
        const auto rank = [&](int of) { return rank_of_stage(placement, of, p); };
        if (stage + 1 < candidate.stages())
          costs.stages[at(stage)].forward += blocked_seconds(work, rank(stage), rank(stage + 1));
        if (stage > 0)
          costs.stages[at(stage)].input += blocked_seconds(work, rank(stage), rank(stage - 1));
      }
      costs.pairs.clear();
    }
  }
  for (const RankOnce& once : work.once)
    costs.ranks.push_back({.load = 0,
                           .norm = reductions ? once.reduction : 0,
                           .update = once.update + (reductions ? once.gather : 0),
                           .refresh = 0});
  return costs;
}

struct OnePipeline {
  Layout layout;
  Plan plan;
};

OnePipeline one_pipeline(const PlanCandidate& candidate, int microbatches) {
  std::vector<UnitRange> cuts;
  for (int stage = 0; stage < candidate.stages(); ++stage) cuts.push_back({stage, stage + 1});
  OnePipeline one;
  const Entry<Schedule>& schedule = find_schedule(candidate.schedule);
  one.layout =
      make_layout(cuts, {candidate.pp, 1}, microbatches, 1, folding_of(schedule, candidate.chunks));
  one.plan = merge_input_weight(expand(one.layout, schedule.value, schedule.name), one.layout);
  one.plan = add_reduction(add_transfers(one.plan, one.layout));
  return one;
}

}  // namespace

StepPrediction simulate_step(const PlanProblem& problem, const PlanCandidate& candidate,
                             const PipelineWork& work, bool parts) {
  const int m = candidate.microbatches(problem.config), p = candidate.pp;
  const OnePipeline one = one_pipeline(candidate, m);
  const auto run = [&](bool transfers, bool reductions) {
    return simulate(one.plan, one.layout,
                    simulation_costs(problem, candidate, work, transfers, reductions));
  };
  const Timeline timeline = run(true, true);
  StepPrediction step{.seconds = timeline.makespan, .peaks = timeline.peak_activations};
  if (!parts) return step;
  step.transfer = std::max(0.0, step.seconds - run(false, true).makespan);
  step.reduction = std::max(0.0, step.seconds - run(true, false).makespan);
  const std::vector<double> seconds = rank_seconds(candidate, work);
  const double busy = m * std::accumulate(seconds.begin(), seconds.end(), 0.0) / p;
  step.again = m * work.again / p;
  step.group = m * work.group / p;
  step.compute = busy - step.again - step.group;
  for (const RankOnce& once : work.once) step.update += once.update / p;
  step.bubble = std::max(0.0, step.seconds - busy - step.transfer - step.reduction - step.update);
  return step;
}

}  // namespace concertina
