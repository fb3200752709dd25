#include "parallel/simulate/idle_causes.h"

#include <algorithm>

#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

constexpr std::array<std::string_view, kCauses> kNames{
    "schedule", "imbalance", "variation", "transfer", "reduction", "optimizer", "other"};

/// Finds the causes of a step's waits from the times of all ranks.
class Attribution {
 public:
  Attribution(const Plan& plan, const Layout& layout, const std::vector<StepRecord>& ranks)
      : plan_(plan), stages_(layout.stages()), ranks_(ranks), index_(plan, layout) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (std::size_t i = 0; i < plan.rows[rank].size(); ++i)
        if (plan.rows[rank][i].kind == Kind::STEP)
          all_at_step_ = std::max(all_at_step_, ranks[rank].actions[i].start);
  }

  double computed_until(std::size_t rank, const WaitTime& wait) const {
    return std::clamp(ready(rank, wait), wait.start, wait.end);
  }

 private:
  const ActionTime* time_of(int node) const {
    if (node < 0) return nullptr;
    const Place place = index_.place(node);
    return &ranks_[static_cast<std::size_t>(place.rank)]
                .actions[static_cast<std::size_t>(place.position)];
  }

  /// When the other side had completed the computation that this wait depends on.
  double ready(std::size_t rank, const WaitTime& wait) const {
    const Action& at = wait.transfer;
    const ActionTime* time = nullptr;
    switch (wait.what) {
      case WaitFor::receive:
        time = time_of(at.kind == Kind::RECV_F
                           ? index_.find(Kind::F, at.stage - 1, at.microbatch)
                           : index_.find_input_gradient(at.stage + 1, at.microbatch));
        return time == nullptr ? wait.start : time->end;
      case WaitFor::send:
        time = time_of(index_.find(counterpart(at)));
        return time == nullptr ? wait.start : time->start;
      case WaitFor::reduction:
        return last_gradient(rank);
      case WaitFor::ranks:
        return all_at_step_;
      default:
        return wait.start;
    }
  }

  /// When the last gradient for the units of `rank` is complete on any rank.
  double last_gradient(std::size_t rank) const {
    double last = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!shares_units(rank, r)) continue;
      for (std::size_t i = 0; i < plan_.rows[r].size(); ++i)
        if (makes_weight_gradient(plan_.rows[r][i].kind))
          last = std::max(last, ranks_[r].actions[i].end);
    }
    return last;
  }

  bool shares_units(std::size_t a, std::size_t b) const {
    for (const StagePlacement& s : stages_)
      for (const StagePlacement& t : stages_)
        if (s.rank == static_cast<int>(a) && t.rank == static_cast<int>(b) &&
            s.first_unit < t.last_unit && t.first_unit < s.last_unit)
          return true;
    return false;
  }

  const Plan& plan_;
  const std::vector<StagePlacement> stages_;
  const std::vector<StepRecord>& ranks_;
  const PlanIndex index_;
  double all_at_step_ = 0;
};

/// Adds the time of posting, copying and adding outside of computation and waits.
void add_handling(const std::vector<Action>& row, const StepRecord& record, IdleCauses& causes) {
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!is_compute(row[i].kind) && row[i].kind != Kind::STEP)
      causes[row[i].kind == Kind::REDUCE ? Cause::reduction : Cause::transfer] +=
          record.actions[i].end - record.actions[i].start;
}

std::vector<double> idle_seconds(const Timeline& timeline) {
  std::vector<double> idle;
  for (const double busy : timeline.busy) idle.push_back(timeline.makespan - busy);
  return idle;
}

}  // namespace

std::string_view name_of(Cause cause) {
  return kNames[static_cast<std::size_t>(cause)];
}

StepSpan span_of(const std::vector<StepRecord>& ranks) {
  StepSpan span{ranks.front().start, ranks.front().end};
  for (const StepRecord& record : ranks) {
    span.start = std::min(span.start, record.start);
    span.end = std::max(span.end, record.end);
  }
  return span;
}

Costs equal_stages(const Layout& layout, Costs costs) {
  const std::vector<Pipeline>& pipelines = layout.pipelines;
  const std::vector<StagePlacement> places = layout.stages();
  const bool alike = std::ranges::all_of(pipelines, [&](const Pipeline& pipeline) {
    return pipeline.stages.size() == pipelines[0].stages.size();
  });
  for (std::size_t first = 0, p = 0; first < places.size(); ++p) {
    const std::size_t last = alike ? places.size() : first + pipelines[p].stages.size();
    double trained = 0;  // number of stages with gradients
    StageCosts sum{0, 0, 0};
    for (std::size_t s = first; s < last; ++s) {
      trained += places[s].last_unit > layout.frozen_units ? 1 : 0;
      sum.forward += costs.stages[s].forward;
      sum.input += costs.stages[s].input;
      sum.weight += costs.stages[s].weight;
    }
    for (std::size_t s = first; s < last; ++s) {
      costs.stages[s].forward = sum.forward / static_cast<double>(last - first);
      costs.stages[s].input = sum.input / trained;
      costs.stages[s].weight = sum.weight / trained;
    }
    first = last;
  }
  return costs;
}

ExpectedIdle expected_idle(const Plan& plan, const Layout& layout, const Costs& costs) {
  Costs actual = unit_costs(layout);
  for (std::size_t s = 0; s < actual.stages.size(); ++s) {
    actual.stages[s].forward = costs.stages[s].forward;
    actual.stages[s].input = costs.stages[s].input;
    actual.stages[s].weight = costs.stages[s].weight;
  }
  const Costs equal = equal_stages(layout, actual);
  return {idle_seconds(simulate(plan, layout, equal)),
          idle_seconds(simulate(plan, layout, actual))};
}

Cause cause_of(WaitFor what) {
  if (what == WaitFor::reduction) return Cause::reduction;
  return what == WaitFor::ranks || what == WaitFor::weights ? Cause::optimizer : Cause::transfer;
}

std::vector<std::vector<double>> computed_until(const Plan& plan, const Layout& layout,
                                                const std::vector<StepRecord>& ranks) {
  const Attribution attribution(plan, layout, ranks);
  std::vector<std::vector<double>> result(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const WaitTime& wait : ranks[rank].waits)
      result[rank].push_back(attribution.computed_until(rank, wait));
  return result;
}

std::vector<IdleCauses> idle_causes(const Plan& plan, const Layout& layout,
                                    const std::vector<StepRecord>& ranks,
                                    const ExpectedIdle& expected) {
  const std::vector<std::vector<double>> computed = computed_until(plan, layout, ranks);
  const double seconds = span_of(ranks).seconds();
  std::vector<IdleCauses> result;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    double peers = 0;
    IdleCauses causes;
    for (std::size_t i = 0; i < ranks[rank].waits.size(); ++i) {
      const WaitTime& wait = ranks[rank].waits[i];
      peers += computed[rank][i] - wait.start;
      causes[cause_of(wait.what)] += wait.end - computed[rank][i];
    }
    add_handling(plan.rows[rank], ranks[rank], causes);
    const double idle = seconds - busy_seconds(plan.rows[rank], ranks[rank]);
    causes[Cause::other] = idle - peers - causes.total();
    causes[Cause::schedule] = std::min(peers, expected.equal[rank]);
    peers -= causes[Cause::schedule];
    causes[Cause::imbalance] =
        std::min(peers, std::max(0.0, expected.actual[rank] - expected.equal[rank]));
    causes[Cause::variation] = peers - causes[Cause::imbalance];
    result.push_back(causes);
  }
  return result;
}

}  // namespace concertina
