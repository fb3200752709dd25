// `concertina plan move`: predicts the cost of a layout change, without a launch.
#include "experiments/commands/plan/plan_options.h"

namespace concertina {
namespace {

struct PlanMoveOptions : PredictionSource {
  std::string from, to;
};

int run_plan_move(const PlanMoveOptions& options) {
  if (options.from.empty() && options.to.empty())
    throw_input("no layouts to move between", "concertina plan move",
                "--from KEYS, --to KEYS or both, such as --to \"parallel.pp=2\"");
  const nlohmann::ordered_json moves =
      move_report(options.config, plan_options(options), options.from, options.to);
  print_once(options.json ? json_line(moves) : move_text(moves));
  return 0;
}

void add_plan_move_options(CLI::App& app, PlanMoveOptions& options) {
  add_world_option(app, options.plan.world);
  app.add_option("--from", options.from,
                 "layout before the change, as keys that override the config, such as "
                 "\"parallel.pp=4 parallel.dp=1\" (default: the config's)")
      ->type_name("KEYS");
  app.add_option("--to", options.to,
                 "layout after the change, in the same form as --from (default: the config's)")
      ->type_name("KEYS");
  add_source_options(app, options, /*rates=*/false);
  add_json_option(app, options);
}

}  // namespace

Command command_plan_move() {
  return make_command<PlanMoveOptions>(
      "predict how much data a layout change moves, and how long it takes", add_plan_move_options,
      run_plan_move);
}

}  // namespace concertina
