#include "parallel/generate/interleave.h"

#include <algorithm>
#include <set>

#include "parallel/simulate/simulate.h"

namespace concertina {

std::vector<Action> in_order(std::vector<TimedAction> timed) {
  std::ranges::stable_sort(timed, {}, &TimedAction::time);
  std::vector<Action> actions;
  for (const TimedAction& one : timed) actions.push_back(one.action);
  return actions;
}

Rows interleave(const Plan& plan, const Layout& layout, const std::vector<int>& target, int ranks) {
  Rows rows(ranks);
  if (std::set(target.begin(), target.end()).size() == target.size()) {  // no rows share a rank
    for (std::size_t row = 0; row < plan.rows.size(); ++row) rows[target[row]] = plan.rows[row];
    return rows;
  }
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  std::vector<std::vector<TimedAction>> timed(ranks);
  for (std::size_t row = 0; row < plan.rows.size(); ++row)
    for (std::size_t i = 0; i < plan.rows[row].size(); ++i)
      timed[target[row]].push_back({timeline.rows[row][i].start, plan.rows[row][i]});
  for (int rank = 0; rank < ranks; ++rank) rows[rank] = in_order(std::move(timed[rank]));
  return rows;
}

Rows place_stages(const PipelineShape& shape, Rows stage_rows) {
  const int stages = shape.stages();
  return interleave({std::move(stage_rows)},
                    make_layout(single_units(stages), {stages, 1}, shape.microbatches, 1),
                    shape.stage_rank, shape.ranks);
}

}  // namespace concertina
