// `concertina plan show`, or `concertina plan`: predicts the memory, times and waits of a run with
// any number of ranks.
#include <fmt/format.h>

#include "experiments/commands/plan/plan_options.h"
#include "experiments/run/devices.h"

namespace concertina {
namespace {

int run_plan_show(const PredictionSource& options) {
  const nlohmann::ordered_json report =
      plan_report(options.config, plan_options(options), device_memory(options.config));
  print_once(options.json ? json_line(report) : plan_text(report));
  return 0;
}

/// Adds a former option of `plan`, which throws an error that names the command that replaced it.
void add_former_option(CLI::App& app, const std::string& option, const std::string& command) {
  const CLI::callback_t refuse = [=](const CLI::results_t&) -> bool {
    throw_input(fmt::format("`plan {}` is now a command", option), "concertina plan", command);
  };
  app.add_option(option, refuse, "")->expected(0, 1)->group("");  // hidden from the help
}

void add_plan_show_options(CLI::App& app, PredictionSource& options) {
  add_world_option(app, options.plan.world);
  add_source_options(app, options, /*rates=*/true);
  add_json_option(app, options);
  add_former_option(app, "--search", "concertina plan search @FILE --world N --machine NAME");
  add_former_option(app, "--freeze", "concertina plan freeze @FILE --policy POLICY");
  for (const char* end : {"--from", "--to"})
    add_former_option(app, end, "concertina plan move @FILE --from KEYS --to KEYS");
}

}  // namespace

Command command_plan_show() {
  return make_command<PredictionSource>(
      "predict memory and step time of one layout (default command of `plan`)",
      add_plan_show_options, run_plan_show);
}

}  // namespace concertina
