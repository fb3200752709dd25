// The plan that `concertina schedule` speaks of: generated, or read from a file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "experiments/commands/command_schedule.h"
#include "experiments/config/schedule_file.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {
namespace {

bool is_name(const std::string& text) {
  for (const auto& entry : schedules())
    if (entry.name == text) return true;
  return false;
}

/// Throws unless a stage of each pipeline, which has one unit a stage, is left to train.
void freeze(Layout& layout, int stages) {
  for (const Pipeline& pipeline : layout.pipelines)
    if (const auto all = std::ssize(pipeline.stages); stages >= all)
      throw_input(fmt::format("{} stages are frozen of {}: nothing is left to train", stages, all),
                  "--frozen", fmt::format("--frozen from 0 to {}", all - 1));
  layout.frozen_units = stages;
}

/// One replica of ranks x chunks stages, one unit a stage.
Planned generate(const ScheduleOptions& options) {
  const Entry<Schedule>& schedule = find_schedule(options.schedule);
  const Folding folding = folding_of(schedule, options.chunks);
  const int stages = options.ranks * folding.chunks;
  int leaves = default_leaves(options.microbatches);
  if (leaves < folding.pipelines()) leaves = options.microbatches;
  std::vector<UnitRange> units;
  for (int stage = 0; stage < stages; ++stage) units.push_back({stage, stage + 1});
  const Grid grid = fit({.world = options.ranks,
                         .units = stages,
                         .microbatches = options.microbatches,
                         .leaves = leaves},
                        options.ranks, 1, folding);
  Planned result{{}, {}, &schedule.value, folding.chunks};
  result.layout = make_layout(units, grid, options.microbatches, leaves, folding);
  freeze(result.layout, options.frozen);
  Limits limits;
  limits.leaf_microbatches = options.microbatches / leaves;
  result.plan = make_plan(result.layout, options.schedule, limits);
  if (options.compute_only) {
    const Plan all = expand(result.layout, schedule.value, schedule.name);
    result.plan = merge_input_weight(drop_frozen(all, result.layout), result.layout);
  }
  return result;
}

/// What `train` would run.
Planned read(const ScheduleOptions& options) {
  if (std::error_code error; !std::filesystem::exists(options.schedule, error)) {
    throw_input(fmt::format("'{}' is neither a schedule nor a file", options.schedule),
                "command line",
                fmt::format("a file, or one of: {}", fmt::join(names_of(schedules()), ", ")));
  }
  ScheduleFile file = read_schedule_file(options.schedule);
  freeze(file.layout, options.frozen);
  int microbatches = 0;
  for (const Pipeline& pipeline : file.layout.pipelines)
    microbatches = std::max(microbatches, pipeline.last_microbatch);
  Limits limits;
  limits.leaf_microbatches = microbatches / default_leaves(microbatches);
  Planned result{complete(std::move(file.plan), file.layout, options.schedule, limits),
                 std::move(file.layout), nullptr, 1};
  for (auto& row : result.plan.rows)
    if (options.compute_only)
      std::erase_if(row, [](const Action& action) { return !is_compute(action.kind); });
  return result;
}

}  // namespace

Planned plan_of(const ScheduleOptions& options) {
  return is_name(options.schedule) ? generate(options) : read(options);
}

}  // namespace concertina
