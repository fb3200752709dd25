// `concertina schedule show`: prints a plan with one row of actions per rank.
#include <fmt/format.h>

#include "experiments/commands/schedule/schedule_options.h"

namespace concertina {
namespace {

struct ShowOptions : ScheduleOptions {
  bool grid = false;
};

int run_schedule_show(const ShowOptions& options) {
  options.excludes("--compute-only", "--grid", options.grid);
  if (options.grid) return print_grid(options, {options.schedule});
  fmt::print("{}", to_text(plan_of(options).plan));
  return 0;
}

void add_show_options(CLI::App& app, ShowOptions& options) {
  add_schedule_option(app, options);
  add_plan_options(app, options);
  add_grid_option(app, options.grid);
  app.add_flag("--compute-only", options.compute_only, "omit transfers and reduction");
}

}  // namespace

Command command_schedule_show() {
  return make_command<ShowOptions>("print a plan, one row of actions per rank", add_show_options,
                                   run_schedule_show);
}

}  // namespace concertina
