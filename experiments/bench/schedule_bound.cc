#include "experiments/bench/schedule_bound.h"

#include "parallel/simulate/simulate.h"

namespace concertina {

double step_seconds(const std::vector<Action>& row, const StepRecord& record) {
  if (row.empty() || row.back().kind != Kind::STEP) return 0;
  const ActionTime& step = record.actions.back();
  return step.busy - waited(record, step);
}

double schedule_bound(const Plan& plan, const Layout& layout, const StageMeans& means,
                      const std::vector<double>& steps) {
  Costs costs;
  costs.stages = means.costs();
  for (const double seconds : steps)
    costs.ranks.push_back({.load = 0, .norm = 0, .update = seconds, .refresh = 0});
  return simulate(plan, layout, costs).makespan;
}

}  // namespace concertina
