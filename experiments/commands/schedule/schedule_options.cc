#include "experiments/commands/schedule/schedule_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "core/text/nearest.h"
#include "experiments/config/schedule_file.h"
#include "experiments/machine/machine.h"
#include "io/file.h"
#include "parallel/generate/one_replica.h"
#include "parallel/generate/passes.h"
#include "parallel/predict/machine.h"

namespace concertina {
namespace {

/// Freezes leading stages, which have one unit each. Throws unless each pipeline keeps a stage to
/// train.
void freeze(Layout& layout, int stages) {
  for (const Pipeline& pipeline : layout.pipelines)
    if (const auto all = std::ssize(pipeline.stages); stages >= all)
      throw_input(fmt::format("--frozen {} of {} stages leaves nothing to train", stages, all),
                  "--frozen", fmt::format("--frozen from 0 to {}", all - 1));
  layout.frozen_units = stages;
}

/// Generates a plan for one replica of ranks x chunks stages with one unit each.
Planned generate(const ScheduleOptions& options) {
  const Entry<Schedule>& schedule = find_schedule(options.schedule);
  const Folding folding = folding_of(schedule, options.chunks.value_or(0));
  const int ranks = options.ranks.value_or(kDefaultRanks);
  const int microbatches = options.microbatches.value_or(kDefaultMicrobatches);
  require_room(std::int64_t{ranks} * folding.chunks, microbatches, free_bytes());
  auto [layout, leaves] = one_replica(ranks, microbatches, options.leaves, folding);
  freeze(layout, options.frozen);
  Plan plan = make_plan(layout, options.schedule, {.leaf_microbatches = microbatches / leaves});
  return {std::move(plan), std::move(layout), &schedule.value, folding.chunks, leaves};
}

/// Throws Error{bad_input} if an option contradicts the file.
void require_agreement(const ScheduleOptions& options, const ScheduleFile& file) {
  const auto stages = static_cast<int>(file.layout.pipelines[0].stages.size());
  const auto chunks = options.chunks.value_or(0) == 0 ? std::nullopt : options.chunks;
  for (const auto& [option, given, is] :
       {std::tuple{"--ranks", options.ranks, file.ranks()},
        {"--microbatches", options.microbatches, file.microbatches()},
        {"--chunks", chunks, stages / file.ranks()}})
    if (given && *given != is)
      throw_input(fmt::format("{} {} contradicts the file, which has {}", option, *given, is),
                  options.schedule, fmt::format("remove {}", option));
}

/// Reads the schedule as `train` would.
Planned read(const ScheduleOptions& options) {
  if (!exists_at(options.schedule)) {
    throw_input(
        fmt::format("'{}' is neither a schedule nor a file", options.schedule), "command line",
        one_of(nearest_word(options.schedule, names_of(schedules())), names_of(schedules())) +
            ", or a file");
  }
  ScheduleFile file = read_schedule_file(options.schedule);
  freeze(file.layout, options.frozen);
  std::int64_t cells = 0;
  for (const Pipeline& pipeline : file.layout.pipelines)
    cells += std::ssize(pipeline.stages) * pipeline.microbatches();
  require_room(1, cells, free_bytes());
  require_agreement(options, file);
  const int leaves = leaves_of(options.leaves, file.microbatches());
  Plan plan = run_passes({std::move(file.plan), "", options.schedule}, file.layout,
                         {.leaf_microbatches = file.microbatches() / leaves});
  return {std::move(plan), std::move(file.layout), nullptr, 1, leaves};
}

}  // namespace

void add_schedule_option(CLI::App& app, ScheduleOptions& options) {
  app.add_option("schedule", options.schedule,
                 "schedule name (`schedule list`), or file with one row of actions per rank")
      ->type_name("NAME|FILE")
      ->required();
}

void add_shape_options(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--ranks", options.ranks, "number of pipeline ranks, unless a file defines it")
      ->check(whole_number(1, 4096))
      ->default_str(fmt::to_string(kDefaultRanks));
  app.add_option("--microbatches", options.microbatches,
                 "number of microbatches per step, unless a schedule file defines it")
      ->check(whole_number(1, 65536))
      ->default_str(fmt::to_string(kDefaultMicrobatches));
  app.add_option("--leaves", options.leaves,
                 "number of leaves in the gradient sum, as in numerics.leaves: a divisor of "
                 "--microbatches (default: the largest up to 16)")
      ->check(whole_number(1, 65536));
}

void add_plan_options(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--chunks", options.chunks, "stages per rank; 0: what the schedule requires")
      ->check(whole_number(0, 64))
      ->default_str("0");
  add_default_option(app, "--frozen", options.frozen,
                     "number of leading stages that are frozen (see freeze.units)")
      ->check(whole_number(0, 65536));
  add_shape_options(app, options);
}

void add_cost_options(CLI::App& app, ScheduleOptions& options) {
  add_default_option(
      app, "--costs", options.costs,
      "seconds that a microbatch's F, I and W take on a stage (search, draw: on a rank); or a file "
      "with the header F,I,W and a row per stage; or a run directory with measured unit costs")
      ->type_name("F,I,W|FILE.csv|RUN");
  app.add_option("--links", options.links.links,
                 "source of link speeds: a machine file (`bench links --write`) or a run (default: "
                 "the run in --costs, otherwise transfers are free)")
      ->type_name("FILE|RUN");
  app.add_option("--boundary-bytes", options.links.boundary_bytes,
                 "size of a message between stages, for --links with --costs F,I,W in seconds")
      ->type_name("BYTES")
      ->check(number(0, 1e15));
  app.add_option("--latency", options.links.latency,
                 "fixed duration of every message between ranks, instead of --links; messages do "
                 "not occupy a rank or link, as in published simulations")
      ->type_name("SECONDS")
      ->check(number(0, kLargestValue));
}

void add_grid_option(CLI::App& app, bool& grid) {
  app.add_flag("--grid", grid, "print the predicted timeline as text");
}

ScheduleCosts costs_of(const ScheduleOptions& options) {
  // A path may contain a comma.
  if (exists_at(options.costs)) return ScheduleCosts({options.costs}, options.links);
  return ScheduleCosts(CLI::detail::split(options.costs, ','), options.links);
}

bool is_schedule(std::string_view name) {
  return std::ranges::any_of(schedules(), [&](const auto& entry) { return entry.name == name; });
}

double free_bytes() {
  const auto machine = memory();
  return machine ? static_cast<double>(machine->available) : std::numeric_limits<double>::max();
}

Planned plan_of(const ScheduleOptions& options) {
  Planned planned = is_schedule(options.schedule) ? generate(options) : read(options);
  if (options.compute_only)
    for (std::vector<Action>& row : planned.plan.rows)
      std::erase_if(row, [](const Action& action) { return !is_compute(action.kind); });
  return planned;
}

}  // namespace concertina
