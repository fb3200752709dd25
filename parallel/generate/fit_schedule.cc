#include "parallel/generate/fit_schedule.h"

#include <tuple>

#include "core/error.h"
#include "core/text/number_text.h"
#include "parallel/generate/assign.h"
#include "parallel/plan/partition.h"

namespace concertina {
namespace {

/// Throws if the rows of the file and its `copies` replicas do not match the rest of the config.
void require_fit(const Request& request, const LayoutLimits& limits) {
  const ScheduleFile& file = *request.file;
  const int rows = file.ranks(), copies = limits.world / rows;
  if (limits.world % rows != 0)
    throw_input(fmt::format("{} is a schedule for {}, but the run has {}", file.path,
                            counted(rows, "rank"), counted(limits.world, "rank")),
                "parallel.schedule",
                fmt::format("{}, or a multiple of it for several replicas", counted(rows, "rank")));
  const auto stages = static_cast<int>(file.layout.pipelines[0].stages.size());
  for (const auto& [key, given, is] : {std::tuple{"parallel.pp", request.pp, rows},
                                       {"parallel.dp", request.dp, copies},
                                       {"parallel.chunks", request.chunks, stages / rows}})
    if (given != 0 && given != is)
      throw_input(fmt::format("{} = {}, but {} implies {}", key, given, file.path, is), key,
                  fmt::format("omit {}", key));
  if (fitting_replicas(file, limits.world, limits.microbatches) == 0)
    throw_input(fmt::format("{} has {} per replica, but a step has {} for {}", file.path,
                            counted(file.microbatches(), "microbatch"), limits.microbatches,
                            counted(copies, "replica")),
                "batch.microbatches",
                fmt::format("batch.microbatches = {}", copies * file.microbatches()));
  for (const Pipeline& pipeline : file.layout.pipelines)
    if (const int deep = static_cast<int>(pipeline.stages.size()); deep > limits.units)
      throw_input(fmt::format("{} has pipelines of {}, but the model has {}", file.path,
                              counted(deep, "stage"), counted(limits.units, "unit")),
                  "parallel.schedule", "fewer stages, or a model with more layers");
}

}  // namespace

int fitting_replicas(const ScheduleFile& file, int world, int all) {
  const int copies = world / file.ranks();
  return copies * file.ranks() == world && copies * file.microbatches() == all ? copies : 0;
}

Layout file_layout(const Request& request, const std::vector<double>& unit_costs,
                   const LayoutLimits& limits) {
  require_fit(request, limits);
  const ScheduleFile& file = *request.file;
  const int copies = limits.world / file.ranks();
  Layout layout;
  for (int copy = 0; copy < copies; ++copy)
    for (Pipeline pipeline : file.layout.pipelines) {
      const std::vector<UnitRange> units =
          partition(unit_costs, static_cast<int>(pipeline.stages.size()), request.partition);
      for (std::size_t s = 0; s < units.size(); ++s)
        pipeline.stages[s] = {pipeline.stages[s].rank + copy * file.ranks(), units[s].first,
                              units[s].last};
      pipeline.first_microbatch += copy * file.microbatches();
      pipeline.last_microbatch += copy * file.microbatches();
      layout.pipelines.push_back(std::move(pipeline));
    }
  return layout;
}

GivenSchedule file_schedule(const Request& request) {
  const ScheduleFile& file = *request.file;
  const int working = request.world - request.spare;
  const int copies = request.layout.pipelines.empty() ? working / file.ranks() : 1;
  Plan plan;
  for (int copy = 0; copy < copies; ++copy)
    for (std::vector<Action> row : file.plan.rows) {
      for (Action& action : row) {
        if (action.kind != Kind::STEP) action.stage += copy * file.layout.stage_count();
        if (action.microbatch >= 0) action.microbatch += copy * file.microbatches();
      }
      plan.rows.push_back(std::move(row));
    }
  return {std::move(plan), "", file.path};
}

}  // namespace concertina
