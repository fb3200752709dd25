// The plan that `concertina schedule` speaks of: generated, or read from a file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "experiments/commands/command_schedule.h"
#include "experiments/commands/one_replica.h"
#include "experiments/config/schedule_file.h"
#include "experiments/machine/machine.h"
#include "parallel/generate/passes.h"

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
      throw_input(fmt::format("--frozen {} of {} stages: nothing is left to train", stages, all),
                  "--frozen", fmt::format("--frozen from 0 to {}", all - 1));
  layout.frozen_units = stages;
}

/// One replica of ranks x chunks stages, one unit a stage.
Planned generate(const ScheduleOptions& options) {
  const Entry<Schedule>& schedule = find_schedule(options.schedule);
  const Folding folding = folding_of(schedule, options.chunks.value_or(0));
  const int ranks = options.ranks.value_or(kUsualRanks);
  const int microbatches = options.microbatches.value_or(kUsualMicrobatches);
  require_room(std::int64_t{ranks} * folding.chunks, microbatches, free_bytes());
  auto [layout, leaves] = one_replica(ranks, microbatches, options.leaves, folding);
  freeze(layout, options.frozen);
  Plan plan = make_plan(layout, options.schedule, {.leaf_microbatches = microbatches / leaves});
  return {std::move(plan), std::move(layout), &schedule.value, folding.chunks, leaves};
}

/// What the command line says of a file has to be what the file says itself.
void require_agreement(const ScheduleOptions& options, const ScheduleFile& file) {
  const auto stages = static_cast<int>(file.layout.pipelines[0].stages.size());
  const auto chunks = options.chunks.value_or(0) == 0 ? std::nullopt : options.chunks;
  for (const auto& [option, given, is] :
       {std::tuple{"--ranks", options.ranks, file.ranks()},
        {"--microbatches", options.microbatches, file.microbatches()},
        {"--chunks", chunks, stages / file.ranks()}})
    if (given && *given != is)
      throw_input(fmt::format("{} {} is given, but the file has {}", option, *given, is),
                  options.schedule, fmt::format("leave out {}: the file says it", option));
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
  std::int64_t cells = 0;
  for (const Pipeline& pipeline : file.layout.pipelines)
    cells += std::ssize(pipeline.stages) * pipeline.microbatches();
  require_room(1, cells, free_bytes());
  require_agreement(options, file);
  const int leaves = leaves_of(options.leaves, file.microbatches());
  Plan plan = complete(std::move(file.plan), file.layout, options.schedule,
                       {.leaf_microbatches = file.microbatches() / leaves});
  return {std::move(plan), std::move(file.layout), nullptr, 1, leaves};
}

}  // namespace

double free_bytes() {
  const auto machine = memory();
  return machine ? static_cast<double>(machine->available) : std::numeric_limits<double>::max();
}

Planned plan_of(const ScheduleOptions& options) {
  Planned planned = is_name(options.schedule) ? generate(options) : read(options);
  if (options.compute_only)
    for (std::vector<Action>& row : planned.plan.rows)
      std::erase_if(row, [](const Action& action) { return !is_compute(action.kind); });
  return planned;
}

}  // namespace concertina
