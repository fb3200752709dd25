#include "parallel/predict/step_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/index.h"
#include "parallel/generate/expand.h"
#include "parallel/generate/passes.h"

namespace concertina {
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
  const int m = candidate.microbatches(problem.batch);
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
  const int m = candidate.microbatches(problem.batch), p = candidate.pp;
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
  one.plan = merge_input_weight({expand(one.layout, schedule.value, schedule.name), one.layout});
  one.plan = add_reduction(add_transfers({one.plan, one.layout}));
  return one;
}

}  // namespace

StepPrediction simulate_step(const PlanProblem& problem, const PlanCandidate& candidate,
                             const PipelineWork& work, bool parts) {
  const int m = candidate.microbatches(problem.batch), p = candidate.pp;
  const OnePipeline one = one_pipeline(candidate, m);
  const auto run = [&](bool transfers, bool reductions) {
    return simulate(one.plan, one.layout,
                    simulation_costs(problem, candidate, work, transfers, reductions));
  };
  const Timeline timeline = run(true, true);
  StepPrediction step{.seconds = timeline.makespan, .slots = plan_memory(one.plan, one.layout)};
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
