// `concertina schedule`: schedules as values, without MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/commands/command.h"
#include "experiments/costs/schedule_costs.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/schedule.h"

namespace concertina {

struct ScheduleOptions {
  std::string schedule;  // a name, or a file with one row of actions per rank
  std::optional<int> ranks, microbatches, chunks;  // of a file: what it has, if they are given
  std::optional<int> leaves;                       // of the gradient sum; else as `train` has it
  int frozen = 0;               // leading stages of each pipeline that do not train
  int activations = 0;          // check: most microbatches of stages that a rank may save; 0: any
  std::string costs = "1,1,1";  // see ScheduleCosts
  LinkOptions links;
  double memory = 0;  // search: activations a rank
  // search: see ScheduleSearch
  std::string objective = "step";
  double kept_for_weight = 1;
  bool opposite = false;
  std::uint64_t seed = 1;
  int max_chunks = 0;                    // search: see ScheduleSearch
  std::string write;                     // search: the file
  std::vector<std::string> schedules{};  // draw: as `schedule`, a panel each
  std::string out{};                     // draw: the picture
  double width = 6.75;                   // draw: inches
  bool grid = false;                     // draw, show: letters in the terminal
  bool compute_only = false, details = false, json = false;
};

/// A plan and the layout that it is for.
struct Planned {
  Plan plan;
  Layout layout;
  const Schedule* schedule = nullptr;  // null: read from a file
  int chunks = 1;
  int leaves = 1;  // of the reduction tree
};

/// What a schedule with a name has where the command line says nothing.
inline constexpr int kUsualRanks = 4, kUsualMicrobatches = 8;

/// What --costs and --links say.
ScheduleCosts costs_of(const ScheduleOptions& options);

/// Bytes of memory that are free on this machine, as far as it says.
double free_bytes();

/// Checked, wherever it comes from: throws RefusedPlan (parallel/plan/plan_grid.h).
Planned plan_of(const ScheduleOptions& options);

int run_schedule_list(const ScheduleOptions& options);
int run_schedule_show(const ScheduleOptions& options);
int run_schedule_check(const ScheduleOptions& options);
int run_schedule_simulate(const ScheduleOptions& options);
/// Writes a picture of predicted steps; with --grid prints letters.
int run_schedule_draw(const ScheduleOptions& options);
int run_schedule_grid(const ScheduleOptions& options);
/// The schedules of `draw`, and its options for the picture.
void declare_draw(CLI::App& app, ScheduleOptions& options);
int run_schedule_search(const ScheduleOptions& options);

Runner add_schedule(CLI::App& app);

}  // namespace concertina
