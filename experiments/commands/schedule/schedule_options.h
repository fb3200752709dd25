// Options that commands on schedules share, and the plan that they mean: generated, or read from a
// file.
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
  std::optional<int> ranks, microbatches, chunks;  // of a file: what it has, if they are given
  std::optional<int> leaves;                       // of the gradient sum; else as `train` has it
  int frozen = 0;               // leading stages of each pipeline that do not train
  bool compute_only = false;    // without transfers and reduction
  std::string costs = "1,1,1";  // see ScheduleCosts
  LinkOptions links;
};

/// A plan and the layout that it is for.
struct Planned {
  Plan plan;
  Layout layout;
  const Schedule* schedule = nullptr;  // null: read from a file
  int chunks = 1;
  int leaves = 1;  // of the reduction tree
};

/// The numbers of a schedule with a name where the command line says nothing.
inline constexpr int kUsualRanks = 4, kUsualMicrobatches = 8;

/// The values of --costs and --links.
ScheduleCosts costs_of(const ScheduleOptions& options);

/// Whether the registry has a schedule of that name.
bool is_schedule(std::string_view name);

/// Bytes of memory that are free on this machine, as far as it says.
double free_bytes();

/// Checked, wherever it comes from: throws RefusedPlan (parallel/plan/plan_grid.h).
Planned plan_of(const ScheduleOptions& options);

/// Prints predicted timelines of `schedules`, as `draw` takes them, in letters (schedule-draw.cc).
int print_grid(const ScheduleOptions& options, const std::vector<std::string>& schedules);

/// The positional name or file.
void add_schedule_option(CLI::App& app, ScheduleOptions& options);
/// Ranks, microbatches and leaves.
void add_shape_options(CLI::App& app, ScheduleOptions& options);
/// The shape, chunks and what is frozen: what a plan follows from, beside its schedule.
void add_plan_options(CLI::App& app, ScheduleOptions& options);
/// Adds --costs, and --links for what messages take.
void add_cost_options(CLI::App& app, ScheduleOptions& options);
void add_grid_option(CLI::App& app, bool& grid);

}  // namespace concertina
