#include "parallel/generate/expand.h"

#include <algorithm>

#include "parallel/generate/interleave.h"
#include "parallel/plan/check.h"
#include "parallel/plan/plan_grid.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

constexpr const char* kScheduleKey = "parallel.schedule";

std::string blame(std::string_view name) {
  return fmt::format("schedule '{}' is invalid for this layout: ", name);
}

/// `layout` with separate groups of pipelines: each rank of each group has its own row. A group is
/// what a generator orders together: one pipeline, or two opposite ones.
struct Separate {
  Layout layout;
  std::vector<int> target;               // by row: the world rank
  std::vector<PipelineShape> pipelines;  // as seen by generators
};

Separate separate(const Layout& layout, std::size_t group) {
  Separate result{layout, {}, {}};
  int first_row = 0;
  for (std::size_t p = 0; p < layout.pipelines.size(); ++p) {
    if (p % group == 0) first_row = static_cast<int>(result.target.size());
    Pipeline& pipeline = result.layout.pipelines[p];
    PipelineShape shape{0, pipeline.microbatches(), {}};
    for (StagePlacement& stage : pipeline.stages) {
      auto row = std::find(result.target.begin() + first_row, result.target.end(), stage.rank);
      if (row == result.target.end()) row = result.target.insert(row, stage.rank);
      stage.rank = static_cast<int>(row - result.target.begin());
      shape.stage_rank.push_back(stage.rank - first_row);
    }
    shape.ranks = static_cast<int>(result.target.size()) - first_row;
    result.pipelines.push_back(std::move(shape));
  }
  return result;
}

/// Whether all stages are where `schedule` expects them. `back`: second of two opposite pipelines.
bool is_placed(const PipelineShape& shape, const Schedule& schedule, bool back) {
  const int p = shape.ranks, chunks = shape.stages() / p;
  if (shape.stages() % p != 0 || chunks % schedule.chunks.step != 0 ||
      chunks > schedule.chunks.most || p % schedule.rank_step != 0)
    return false;
  for (int s = 0; s < shape.stages(); ++s)
    if (shape.stage_rank[s] != rank_of_stage(schedule.placement, s, p, back)) return false;
  return true;
}

void require_placement(const Separate& apart, const Schedule& schedule, std::string_view name) {
  const std::size_t group = schedule.generate_pair == nullptr ? 1 : 2;
  bool fits = apart.pipelines.size() % group == 0;
  for (std::size_t p = 0; fits && p < apart.pipelines.size(); ++p) {
    fits = is_placed(apart.pipelines[p], schedule, p % group == 1);
    if (p % group == 1) fits &= apart.pipelines[p].ranks == apart.pipelines[p - 1].ranks;
  }
  if (!fits)
    throw_input(fmt::format("schedule '{}' cannot run on this layout", name), "parallel.layout",
                fmt::format("{}; or omit it, so that parallel.pp, dp and chunks define the layout "
                            "for the schedule; or 1f1b or gpipe, which run on any layout",
                            describe(schedule)));
}

/// Generates the actions of group `g`, numbered as in `layout`.
Rows generate_group(const Layout& layout, const Separate& apart, const Schedule& schedule, int g) {
  const bool pair = schedule.generate_pair != nullptr;
  const int first = pair ? 2 * g : g;
  const PipelineShape& shape = apart.pipelines[first];
  Rows rows =
      pair ? schedule.generate_pair(shape, apart.pipelines[first + 1]) : schedule.generate(shape);
  const int stage = layout.first_stage(first);
  for (std::vector<Action>& row : rows) {
    for (Action& action : row) {
      const bool second = pair && action.stage >= shape.stages();
      action.stage += stage;
      action.microbatch += second
                               ? layout.pipelines[first + 1].first_microbatch - shape.microbatches
                               : layout.pipelines[first].first_microbatch;
    }
  }
  return rows;
}

}  // namespace

Plan expand(const Layout& given, const Schedule& schedule, std::string_view name) {
  const Layout layout{given.pipelines};
  const std::size_t group = schedule.generate_pair == nullptr ? 1 : 2;
  const Separate apart = separate(layout, group);
  if (!schedule.any_layout) require_placement(apart, schedule, name);
  Plan plan;
  for (int g = 0; g < static_cast<int>(apart.pipelines.size() / group); ++g)
    for (std::vector<Action>& row : generate_group(layout, apart, schedule, g))
      plan.rows.push_back(std::move(row));
  const Limits compute_only{.transfers = false, .reduction = false};
  if (const auto violation = check(plan, apart.layout, compute_only))
    throw RefusedPlan(plan, *violation, blame(name), kScheduleKey);
  return {interleave(plan, apart.layout, apart.target, rank_count(layout))};
}

void require_size(const Layout& layout) {
  std::int64_t actions = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    actions += most_actions(std::ssize(pipeline.stages), pipeline.microbatches());
  if (actions > static_cast<std::int64_t>(kMostActions))
    throw_input(
        fmt::format("the schedule can have {} actions, but the limit is {}", actions, kMostActions),
        kScheduleKey, "fewer ranks, microbatches or chunks");
}

GivenSchedule named_schedule(const Layout& layout, std::string_view name) {
  require_size(layout);
  return {expand(layout, find_schedule(name).value, name), blame(name), kScheduleKey,
          /*named=*/true};
}

std::int64_t most_actions(std::int64_t stages, std::int64_t microbatches) {
  constexpr std::int64_t kPerCell = 7;
  return kPerCell * stages * microbatches;
}

}  // namespace concertina
