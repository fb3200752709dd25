#include "parallel/predict/candidate_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "core/index.h"
#include "parallel/generate/expand.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

CandidateModel::CandidateModel(const PlanProblem& problem, const PlanCandidate& candidate,
                               WorkTable& table)
    : problem_(problem),
      candidate_(candidate),
      schedule_(find_schedule(candidate.schedule)),
      microbatches_(candidate.microbatches(problem.batch)),
      ranks_(at(candidate.pp)),
      boundary_bytes_(static_cast<double>(problem.model.boundary_bytes) * candidate.samples) {
  const ModelWork& model = table.of(candidate);
  const std::vector<UnitRange>& cuts = table.cuts(candidate);
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    const UnitRange& cut = cuts[at(stage)];
    const StageCosts& costs = stages_.emplace_back(stage_seconds(model.seconds, cut));
    StageBytes bytes{-model.bytes[at(cut.first)].input, stage > 0 ? -boundary_bytes_ : 0};
    Rank& rank = ranks_[at(rank_of(stage))];
    for (int unit = cut.first; unit < cut.last; ++unit) {
      bytes.saved += model.bytes[at(unit)].saved;
      bytes.grads += model.bytes[at(unit)].grads;
      rank.scratch = std::max(rank.scratch, model.bytes[at(unit)].scratch);
    }
    bytes_.push_back(bytes);
    rank.units += cut.last - cut.first;
    rank.seconds += costs.forward + costs.input + costs.weight;
  }
  recompute_ = model.again;
  group_ = model.group;
  for (int rank = 0; rank < candidate.pp; ++rank)
    links_.push_back(boundary_link(rank, (rank + 1) % candidate.pp));
  add_parameters(model, cuts);
  add_once();
}

int CandidateModel::rank_of(int stage) const {
  return rank_of_stage(schedule_.value.placement, stage, candidate_.pp);
}

int CandidateModel::ranks_of_host() const {
  const int ranks = problem_.machine.ranks_per_host;
  return ranks > 0 ? ranks : candidate_.world();
}

/// Returns a group's fraction of its host's network while `sharing` of the host's groups send.
double CandidateModel::host_share(int sharing) const {
  const double nics = std::max(1, problem_.machine.nics_per_host);
  const double own = std::max(1.0, candidate_.tp * nics / ranks_of_host()) / nics;
  return std::min({1.0, own, 1.0 / sharing});
}

/// Returns the link between ranks `rank` and `next` of the pipeline.
LinkCosts CandidateModel::boundary_link(int rank, int next) const {
  const MachineModel& machine = problem_.machine;
  const int host = ranks_of_host(), tp = candidate_.tp;
  const int stride = tp * (problem_.software.pipeline_inside ? 1 : candidate_.dp);
  const bool remote = rank * stride / host != next * stride / host;
  LinkCosts link = remote ? machine.remote : machine.local;
  link.eager_bytes = LinkCosts{}.eager_bytes;
  if (!remote) return link;
  // Each device sends its part of the activations; the parts are gathered in the receiving group.
  const bool all_send = stride >= host || !problem_.software.pipeline_inside;
  const double share = host_share(all_send ? std::max(1, host / tp) : 1);
  const double seconds =
      over(1, link.bandwidth * share) + over(static_cast<double>(tp - 1) / tp, local_rate(machine));
  link.bandwidth = seconds > 0 ? 1 / seconds : std::numeric_limits<double>::infinity();
  return link;
}

/// Bytes per second that a ring over the replicas passes through one device of the group.
double CandidateModel::replica_rate() const {
  const MachineModel& machine = problem_.machine;
  const int host = ranks_of_host(), dp = candidate_.dp;
  const int stride = candidate_.tp * (problem_.software.pipeline_inside ? candidate_.pp : 1);
  const int near = std::clamp(host / stride, 1, dp);  // replicas on one host
  if (near == dp && dp * stride <= host) return local_rate(machine);
  // The ring leaves a host once, however many members it has there, like the rings of other groups.
  const int rings = std::max(1, host / near);
  const double nics = std::max(1, machine.nics_per_host);
  const double share = std::min(1.0 / rings, std::max(1.0, near * nics / host) / nics);
  return std::min(local_rate(machine), machine.remote.bandwidth * share);
}

/// Adds the ranks' parameters, and the exchange of gradients of parameters shared by several ranks.
void CandidateModel::add_parameters(const ModelWork& model, const std::vector<UnitRange>& cuts) {
  for (const HeldParameters& held : model.parameters) {
    std::set<int> holders;
    for (const int unit : held.units) {
      const auto next = std::ranges::upper_bound(cuts, unit, {}, &UnitRange::first);
      holders.insert(rank_of(static_cast<int>(next - cuts.begin()) - 1));
    }
    const LinkCosts link = boundary_link(*holders.begin(), *holders.rbegin());
    const double bytes = held.elements * candidate_.tp * problem_.bytes().gradient;
    for (const int rank : holders) {
      ranks_[at(rank)].parameters += held.elements;
      if (holders.size() > 1) ranks_[at(rank)].exchange += over(bytes, link.bandwidth);
    }
  }
}

/// Adds what ranks do once per step.
void CandidateModel::add_once() {
  const Software& software = problem_.software;
  const double gradient = problem_.bytes().gradient;
  // This program gathers weights in fp32, other programs in the precision of their computations.
  const double gathered = std::min(problem_.bytes().weight, 4.0);
  const double per_parameter = (candidate_.dp - 1.0) / candidate_.dp, rate = replica_rate();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const double ring = over(rank.parameters * per_parameter, rate);
    rank.reduction = ring * gradient;
    if (software.overlaps) {
      // Gradients of a unit are sent as soon as they are ready; those of the first unit are sent
      // last. The number of a rank's first stage is the rank.
      const double last = stages_[r].input + stages_[r].weight;
      rank.reduction = std::max(rank.reduction / rank.units,
                                rank.reduction - last * (rank.units - 1.0) / rank.units);
    }
    (software.sharded ? rank.gather : rank.reduction) +=
        ring * (software.sharded ? gathered : gradient);
    rank.reduction += rank.exchange;
    rank.update =
        rank.parameters / (software.sharded ? candidate_.dp : 1) * update_seconds(problem_.machine);
  }
}

/// Seconds that a rank is blocked, without overlap, while a microbatch moves between ranks.
double CandidateModel::blocked_seconds(int from, int to) const {
  if (from == to) return 0;
  const LinkCosts& link = std::abs(from - to) == 1 ? links_[at(std::min(from, to))] : links_.back();
  return link.latency + over(boundary_bytes_, link.bandwidth);
}

double CandidateModel::least_seconds() const {
  double least = 0, before = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    // In every placement, stage `r` is this rank's first stage.
    least = std::max(least, before + microbatches_ * rank.seconds + rank.update + rank.gather);
    before += stages_[r].forward;
  }
  return least;
}

double CandidateModel::likely_seconds() const {
  const int m = microbatches_, p = candidate_.pp;
  double most = 0, sum = 0, reduction = 0, rest = 0;
  for (const Rank& rank : ranks_) {
    most = std::max(most, rank.seconds);
    sum += rank.seconds;
    reduction = std::max(reduction, rank.reduction);
    rest = std::max(rest, rank.update + rank.gather);
  }
  const auto claim = schedule_.value.bubble.at(p, m, candidate_.chunks);
  const double idle = claim ? claim->value : (p - 1.0) / m;
  double blocked = 0;
  if (!problem_.software.overlaps && p > 1)
    blocked = 2.0 * m * candidate_.chunks * blocked_seconds(0, 1);
  return m * (most + idle * (sum / p)) + blocked + (reduction + rest);
}

Costs CandidateModel::simulation_costs(bool transfers, bool reductions) const {
  Costs costs;
  costs.stages = stages_;
  const int p = candidate_.pp;
  if (transfers && p > 1) costs.boundary_bytes = boundary_bytes_;
  for (int rank = 0; transfers && problem_.software.overlaps && p > 1 && rank < p; ++rank) {
    const int next = (rank + 1) % p;
    costs.pairs[{rank, next}] = costs.pairs[{next, rank}] = links_[at(rank)];
  }
  // Without overlap, the wait for a message to be sent is part of the sender's computation.
  for (int stage = 0; transfers && !problem_.software.overlaps && stage < candidate_.stages();
       ++stage) {
    if (stage + 1 < candidate_.stages())
      costs.stages[at(stage)].forward += blocked_seconds(rank_of(stage), rank_of(stage + 1));
    if (stage > 0)
      costs.stages[at(stage)].input += blocked_seconds(rank_of(stage), rank_of(stage - 1));
  }
  for (const Rank& rank : ranks_)
    costs.ranks.push_back({.load = 0,
                           .norm = reductions ? rank.reduction : 0,
                           .update = rank.update + (reductions ? rank.gather : 0),
                           .refresh = 0});
  return costs;
}

StepPrediction CandidateModel::simulated(bool parts) const {
  const int m = microbatches_, p = candidate_.pp;
  const Layout layout = make_layout(single_units(candidate_.stages()), {p, 1}, m, 1,
                                    folding_of(schedule_, candidate_.chunks));
  Plan plan = merge_input_weight({expand(layout, schedule_.value, schedule_.name), layout});
  plan = add_reduction(add_transfers({plan, layout}));
  const auto seconds = [&](bool transfers, bool reductions) {
    return simulate(plan, layout, simulation_costs(transfers, reductions)).makespan;
  };
  StepPrediction step{.seconds = seconds(true, true), .slots = plan_memory(plan, layout)};
  if (!parts) return step;
  step.transfer = std::max(0.0, step.seconds - seconds(false, true));
  step.reduction = std::max(0.0, step.seconds - seconds(true, false));
  double busy = 0;
  for (const Rank& rank : ranks_) busy += rank.seconds, step.update += rank.update / p;
  busy = m * busy / p;
  step.again = m * recompute_ / p;
  step.group = m * group_ / p;
  step.compute = busy - step.again - step.group;
  step.bubble = std::max(0.0, step.seconds - busy - step.transfer - step.reduction - step.update);
  return step;
}

/// Returns all memory except the activations of a rank.
PlanMemory CandidateModel::state(const Rank& rank) const {
  const Software& software = problem_.software;
  const ParameterBytes& bytes = problem_.bytes();
  const int dp = candidate_.dp;
  unsigned own = 1;  // leaves of the replica's part of the tree
  if (const int leaves = default_leaves(problem_.batch / candidate_.samples); leaves % dp == 0)
    own = static_cast<unsigned>(leaves / dp);
  const int buffers = software.sums_by_tree ? std::bit_width(own) : 1;
  const double received = software.received_bytes * (dp - 1.0) / dp;
  return {.weights = rank.parameters * (bytes.weight + bytes.gradient * buffers + received),
          .optimizer = rank.parameters * bytes.optimizer / (software.sharded ? dp : 1),
          .reserved = problem_.machine.device.reserved_bytes};
}

/// Returns the memory of the fullest rank, given the activations and scratch of each rank.
template <class Activations>
PlanMemory CandidateModel::largest(const Activations& activations) const {
  PlanMemory largest;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    PlanMemory mine = state(ranks_[rank]);
    mine.activations = ranks_[rank].scratch + activations(rank);
    if (mine.total() > largest.total()) largest = mine;
  }
  return largest;
}

PlanMemory CandidateModel::memory(const std::vector<RowMemory>& rows) const {
  return largest([&](std::size_t rank) {
    double bytes = rows[rank].boundaries() * boundary_bytes_;
    for (const StageSlots& slots : rows[rank].stages)
      bytes +=
          slots.saved * bytes_[at(slots.stage)].saved + slots.grads * bytes_[at(slots.stage)].grads;
    return bytes;
  });
}

PlanMemory CandidateModel::memory(const std::vector<int>& peaks) const {
  std::vector<double> kept(ranks_.size());  // per microbatch, on all stages of the rank
  for (int stage = 0; stage < candidate_.stages(); ++stage) {
    const int inner = (stage > 0 ? 1 : 0) + (stage + 1 < candidate_.stages() ? 1 : 0);
    kept[at(rank_of(stage))] += bytes_[at(stage)].saved + inner * boundary_bytes_;
  }
  return largest([&](std::size_t rank) { return peaks[rank] * kept[rank] / candidate_.chunks; });
}

double simulated_actions(const PlanCandidate& candidate, int microbatches) {
  return static_cast<double>(candidate.stages()) * microbatches * (candidate.pp > 1 ? 7 : 3);
}

}  // namespace concertina
