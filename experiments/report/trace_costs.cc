#include "experiments/report/trace_costs.h"

#include <algorithm>
#include <map>

#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

class Mean {
 public:
  void add(double value) { sum_ += value, ++count_; }
  bool empty() const { return count_ == 0; }
  double value() const { return empty() ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Seconds of waits within [start, end].
double waited(const StepRecord& record, const ActionTime& time) {
  double seconds = 0;
  for (const WaitTime& wait : record.waits)
    seconds += std::max(0.0, std::min(wait.end, time.end) - std::max(wait.start, time.start));
  return seconds;
}

StageCosts stage_costs(std::map<std::pair<int, Kind>, Mean>& means, int stage) {
  const auto mean = [&](Kind kind) { return means[{stage, kind}]; };
  StageCosts costs{mean(Kind::F).value(), mean(Kind::I).value(), mean(Kind::W).value()};
  if (mean(Kind::B).empty()) return costs;
  if (mean(Kind::I).empty()) costs.input = mean(Kind::B).value();
  costs.fused = mean(Kind::B).value() - costs.input - costs.weight;
  return costs;
}

/// The parts of one rank's load and STEP, between their waits.
struct RankMeans {
  Mean load, norm, update, refresh;

  void add(const std::vector<Action>& row, const StepRecord& record) {
    double first = record.actions.front().start;
    if (!record.waits.empty()) first = std::min(first, record.waits.front().start);
    load.add(first - record.start);
    if (row.back().kind != Kind::STEP) return;
    const ActionTime& step = record.actions.back();
    double met = step.start, updated = step.end, gathered = step.end;
    for (const WaitTime& wait : record.waits) {
      if (wait.what == WaitFor::ranks) norm.add(wait.start - step.start), met = wait.end;
      if (wait.what == WaitFor::weights) updated = wait.start, gathered = wait.end;
    }
    update.add(updated - met);
    refresh.add(step.end - gathered);
  }
  RankCosts costs() const { return {load.value(), norm.value(), update.value(), refresh.value()}; }
};

/// From the end of a SEND, or the start of the wait if that is later, to the end of the wait.
void add_transfers(const PlanIndex& index, const std::vector<StepRecord>& ranks,
                   std::vector<double>& seconds) {
  for (const StepRecord& record : ranks)
    for (const WaitTime& wait : record.waits) {
      if (wait.what != WaitFor::receive) continue;
      const Place place = index.place(index.find(counterpart(wait.transfer)));
      const double sent = ranks[static_cast<std::size_t>(place.rank)]
                              .actions[static_cast<std::size_t>(place.position)]
                              .end;
      seconds.push_back(std::max(0.0, wait.end - std::max(wait.start, sent)));
    }
}

}  // namespace

Costs measured_costs(const RunTrace& trace) {
  const PlanIndex index(trace.plan, trace.layout);
  std::map<std::pair<int, Kind>, Mean> means;
  std::vector<RankMeans> ranks(trace.plan.rows.size());
  Mean post;
  std::vector<double> transfers;
  for (const std::vector<StepRecord>& step : trace.steps) {
    for (std::size_t rank = 0; rank < step.size(); ++rank) {
      const std::vector<Action>& row = trace.plan.rows[rank];
      for (std::size_t i = 0; i < row.size(); ++i) {
        const ActionTime& time = step[rank].actions[i];
        if (is_compute(row[i].kind))
          means[{row[i].stage, row[i].kind}].add(time.busy - waited(step[rank], time));
        if (is_transfer(row[i].kind)) post.add(time.end - time.start);
      }
      ranks[rank].add(row, step[rank]);
    }
    add_transfers(index, step, transfers);
  }
  Costs costs = unit_costs(trace.layout);
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    costs.stages[s] = stage_costs(means, static_cast<int>(s));
    costs.stages[s].saved_bytes = trace.saved_bytes[s];
  }
  for (const RankMeans& rank : ranks) costs.ranks.push_back(rank.costs());
  costs.post = post.value();
  costs.boundary_bytes = static_cast<double>(trace.boundary_bytes);
  if (!transfers.empty()) {
    const auto middle = transfers.begin() + static_cast<std::ptrdiff_t>(transfers.size() / 2);
    std::nth_element(transfers.begin(), middle, transfers.end());
    costs.local.receive_cpu = *middle / costs.boundary_bytes;
  }
  return costs;
}

}  // namespace concertina
