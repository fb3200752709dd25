#include "parallel/generate/interleave.h"

#include <algorithm>
#include <set>

#include "parallel/simulate/simulate.h"

namespace concertina {

Rows interleave(const Plan& plan, const Layout& layout, const std::vector<int>& target, int ranks) {
  Rows rows(ranks);
  if (std::set(target.begin(), target.end()).size() == target.size()) {  // no rows meet
    for (std::size_t row = 0; row < plan.rows.size(); ++row) rows[target[row]] = plan.rows[row];
    return rows;
  }
  struct Timed {
    double start;
    Action action;
  };
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  std::vector<std::vector<Timed>> timed(ranks);
  for (std::size_t row = 0; row < plan.rows.size(); ++row)
    for (std::size_t i = 0; i < plan.rows[row].size(); ++i)
      timed[target[row]].push_back({timeline.rows[row][i].start, plan.rows[row][i]});

  for (int rank = 0; rank < ranks; ++rank) {
    std::stable_sort(timed[rank].begin(), timed[rank].end(),
                     [](const Timed& a, const Timed& b) { return a.start < b.start; });
    for (const Timed& entry : timed[rank]) rows[rank].push_back(entry.action);
  }
  return rows;
}

Rows place_stages(const PipelineShape& shape, Rows stage_rows) {
  Pipeline pipeline;
  for (int stage = 0; stage < shape.stages(); ++stage)
    pipeline.stages.push_back({stage, stage, stage + 1});
  pipeline.last_microbatch = shape.microbatches;
  return interleave({std::move(stage_rows)}, {{std::move(pipeline)}}, shape.stage_rank,
                    shape.ranks);
}

}  // namespace concertina
