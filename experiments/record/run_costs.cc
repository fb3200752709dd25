#include "experiments/record/run_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/step_history.h"
#include "experiments/config/config_toml.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/run/planning.h"
#include "io/file.h"
#include "io/run_files.h"
#include "parallel/plan/plan_index.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/stage_means.h"

namespace concertina {
namespace {

class Mean {
 public:
  void add(double value) { sum_ += value, ++count_; }
  double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// The mean durations of one rank's load and of the parts of its STEP between waits.
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

/// Measures the time from the end of a SEND, or the start of the wait if that is later, to the end
/// of the wait.
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

void set_stages(const std::vector<StageCosts>& stages, const std::vector<std::size_t>& saved_bytes,
                Costs& costs) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int units = costs.stages[s].units;
    costs.stages[s] = stages[s];
    costs.stages[s].units = units;
    costs.stages[s].saved_bytes = saved_bytes[s];
  }
}

/// A bucket's part is done after the same share of the update as in costs.json.
void set_ranks(const std::vector<RankMeans>& means, Costs& costs) {
  std::vector<RankCosts> ranks;
  for (const RankMeans& rank : means) ranks.push_back(rank.costs());
  for (BucketCosts& bucket : costs.buckets)
    for (std::size_t i = 0; i < bucket.ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(bucket.ranks[i]);
      if (const double known = costs.ranks[rank].update; known > 0)
        bucket.updated[i] *= ranks[rank].update / known;
    }
  costs.ranks = std::move(ranks);
}

}  // namespace

KnownCosts known_costs(const std::string& directory, const Layout& layout, const Plan& plan) {
  const std::string path = run_file(directory, kCostsFile);
  if (!exists_at(path))
    return {{}, "the run has no costs.json, which a launch writes when it ends"};
  try {
    const CostSource source = read_costs(path);
    RunConfig config;
    read_config(source.measured->config, path, config);
    const Job job = job_of(config);
    const Assignment assignment = make_assignment(job, layout, plan);
    return {
        plan_costs(job, assignment, unit_seconds(source, job, assignment, config), source.machine),
        {}};
  } catch (const Error& error) {
    return {{}, fmt::format("{} ({})", error.message(), error.where())};
  }
}

Costs costs_of(const RunTrace& trace, const std::optional<Costs>& known) {
  const PlanIndex index(trace.plan, trace.layout);
  StageMeans means(trace.layout);
  std::vector<RankMeans> ranks(trace.plan.rows.size());
  Mean post;
  std::vector<double> transfers;
  for (const std::vector<StepRecord>& step : trace.steps) {
    for (std::size_t rank = 0; rank < step.size(); ++rank) {
      const std::vector<Action>& row = trace.plan.rows[rank];
      for (std::size_t i = 0; i < row.size(); ++i)
        if (is_transfer(row[i].kind)) post.add(step[rank].actions[i].busy);
      means.add(row, step[rank]);
      ranks[rank].add(row, step[rank]);
    }
    add_transfers(index, step, transfers);
  }
  Costs costs = known.value_or(unit_costs(trace.layout));
  set_stages(means.costs(), trace.saved_bytes, costs);
  set_ranks(ranks, costs);
  costs.post = post.value();
  costs.boundary_bytes = static_cast<double>(trace.boundary_bytes);
  if (!known && !transfers.empty())
    costs.local.receive_cpu = median(std::move(transfers)) / costs.boundary_bytes;
  return costs;
}

}  // namespace concertina
