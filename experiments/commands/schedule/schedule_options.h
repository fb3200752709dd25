// Options shared by schedule commands, and the resulting plan: generated or read from a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/commands/command.h"
#include "experiments/predict/schedule_costs.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/schedule.h"

namespace concertina {

struct ScheduleOptions : CommandOptions {
  std::string schedule;  // a name, or a file with one row of actions per rank
  std::optional<int> ranks, microbatches, chunks;  // for a file: checked if given
  std::optional<int> leaves;                       // of the gradient sum; default: as in `train`
  int frozen = 0;               // leading stages of each pipeline that do not train
  bool compute_only = false;    // without transfers and reduction
  std::string costs = "1,1,1";  // see ScheduleCosts
  LinkOptions links;
};

/// A plan and its layout.
struct Planned {
  Plan plan;
  Layout layout;
  const Schedule* schedule = nullptr;  // null: read from a file
  int chunks = 1;
  int leaves = 1;  // of the reduction tree
};

/// Defaults for a named schedule.
inline constexpr int kDefaultRanks = 4, kDefaultMicrobatches = 8;

/// The costs from --costs and --links.
ScheduleCosts costs_of(const ScheduleOptions& options);

/// Whether a schedule with that name is registered.
bool is_schedule(std::string_view name);

/// Bytes of free memory on this machine; the maximum double if unknown.
double free_bytes();

/// The validated plan. Throws RefusedPlan (parallel/plan/plan_grid.h) if it is invalid.
Planned plan_of(const ScheduleOptions& options);

/// Prints predicted timelines of `schedules` as text, as for `draw` (schedule-draw.cc).
int print_grid(const ScheduleOptions& options, const std::vector<std::string>& schedules);

/// Adds the positional name or file.
void add_schedule_option(CLI::App& app, ScheduleOptions& options);
/// Adds the numbers of ranks, microbatches and leaves.
void add_shape_options(CLI::App& app, ScheduleOptions& options);
/// Adds the shape, chunks and frozen stages, which together with the schedule determine a plan.
void add_plan_options(CLI::App& app, ScheduleOptions& options);
/// Adds --costs, and options for message durations such as --links.
void add_cost_options(CLI::App& app, ScheduleOptions& options);
void add_grid_option(CLI::App& app, bool& grid);

}  // namespace concertina
