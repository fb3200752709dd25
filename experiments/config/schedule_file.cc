#include "experiments/config/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/config/input_file.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/infer_layout.h"
#include "parallel/plan/partition.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "parallel.schedule";

int stage_count(const ScheduleFile& file) {
  return file.layout.stage_count();
}
int row_count(const ScheduleFile& file) {
  return static_cast<int>(file.plan.rows.size());
}
/// Of one replica.
int microbatches(const ScheduleFile& file) {
  return file.layout.pipelines.back().last_microbatch;
}

/// What one row a rank and `copies` replicas ask of the rest of the config.
void require_fit(const ScheduleFile& file, const RunConfig& config, const LayoutLimits& limits) {
  const int rows = row_count(file), copies = limits.world / rows;
  if (limits.world % rows != 0)
    throw_input(fmt::format("{} is a schedule for {}, the run has {}", file.path,
                            counted(rows, "rank"), counted(limits.world, "rank")),
                config.where(kKey),
                fmt::format("{}, or a multiple of it for several replicas", counted(rows, "rank")));
  const ParallelSection& parallel = config.parallel;
  const auto stages = static_cast<int>(file.layout.pipelines[0].stages.size());
  for (const auto& [key, given, is] : {std::tuple{"parallel.pp", parallel.pp, rows},
                                       {"parallel.dp", parallel.dp, copies},
                                       {"parallel.chunks", parallel.chunks, stages / rows}})
    if (given != 0 && given != is)
      throw_input(fmt::format("{} = {}, but {} makes it {}", key, given, file.path, is),
                  config.where(key), fmt::format("leave out {}", key));
  if (fitting_replicas(file, limits.world, limits.microbatches) == 0)
    throw_input(fmt::format("{} has {} per replica; a step has {} for {}", file.path,
                            counted(microbatches(file), "microbatch"), limits.microbatches,
                            counted(copies, "replica")),
                config.where("batch.microbatches"),
                fmt::format("batch.microbatches = {}", copies * microbatches(file)));
  for (const Pipeline& pipeline : file.layout.pipelines)
    if (static_cast<int>(pipeline.stages.size()) > limits.units)
      throw_input(
          fmt::format("{} has pipelines of {}, the model has {}", file.path,
                      counted(std::ssize(pipeline.stages), "stage"), counted(limits.units, "unit")),
          config.where(kKey), "fewer stages, or a model with more layers");
}

/// All replicas, with the model's units.
Layout make_layout(const ScheduleFile& file, int copies, const std::vector<double>& unit_costs,
                   const std::string& partitioner) {
  Layout layout;
  for (int copy = 0; copy < copies; ++copy)
    for (Pipeline pipeline : file.layout.pipelines) {
      const std::vector<UnitRange> units =
          partition(unit_costs, static_cast<int>(pipeline.stages.size()), partitioner);
      for (std::size_t s = 0; s < units.size(); ++s)
        pipeline.stages[s] = {pipeline.stages[s].rank + copy * row_count(file), units[s].first,
                              units[s].last};
      pipeline.first_microbatch += copy * microbatches(file);
      pipeline.last_microbatch += copy * microbatches(file);
      layout.pipelines.push_back(std::move(pipeline));
    }
  return layout;
}

Plan replicate(const ScheduleFile& file, int copies) {
  Plan plan;
  for (int copy = 0; copy < copies; ++copy)
    for (std::vector<Action> row : file.plan.rows) {
      for (Action& action : row) {
        if (action.kind != Kind::STEP) action.stage += copy * stage_count(file);
        if (action.microbatch >= 0) action.microbatch += copy * microbatches(file);
      }
      plan.rows.push_back(std::move(row));
    }
  return plan;
}

}  // namespace

bool is_schedule_file(const std::string& text) {
  const std::vector<std::string_view> names = names_of(schedules());
  const bool is_name = std::find(names.begin(), names.end(), text) != names.end();
  std::error_code ignored;
  return text.find('/') != std::string::npos || text.ends_with(".csv") ||
         (!is_name && !text.empty() && fs::is_regular_file(text, ignored));
}

ScheduleFile read_schedule_file(const std::string& path) {
  constexpr const char* kScheduleFileHint =
      "a text file with one line of actions per rank, as `schedule show` prints it";
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw_input("there is no such schedule file", path, kScheduleFileHint);
  const std::string text = read_input_file(path, kMostScheduleBytes, kScheduleFileHint);
  if (text.empty())
    throw_input("cannot read a schedule from this file: it is empty", path, kScheduleFileHint);
  ScheduleFile result{path, parse_plan(text, path), {}};
  result.layout = infer_layout(result.plan, path);
  return result;
}

int fitting_replicas(const ScheduleFile& file, int world, int all) {
  const int copies = world / row_count(file);
  return copies * row_count(file) == world && copies * microbatches(file) == all ? copies : 0;
}

FittedSchedule fit(const ScheduleFile& file, const RunConfig& config,
                   const std::vector<double>& unit_costs, const LayoutLimits& limits) {
  FittedSchedule result{file.plan, config.parallel.layout};
  if (result.layout.pipelines.empty()) {
    require_fit(file, config, limits);
    const int copies = limits.world / row_count(file);
    result.layout = make_layout(file, copies, unit_costs, config.parallel.partition);
    result.plan = replicate(file, copies);
  }
  validate(result.layout, limits);
  result.layout.frozen_units = config.freeze.units;
  Limits due;
  due.leaf_microbatches = limits.microbatches / limits.leaves;
  result.plan =
      complete(std::move(result.plan), result.layout, file.path, due, config.parallel.overlap);
  return result;
}

}  // namespace concertina
