// `concertina run`.
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "experiments/supervise/supervisor.h"

namespace concertina {
namespace {

struct RunCommand : SupervisedOptions {
  std::optional<int> max_restarts;
};

nlohmann::ordered_json summary_json(const SuperviseSummary& summary) {
  return {{"exit", summary.code},
          {"restarts", summary.restarts},
          {"steps_repeated", summary.steps_repeated},
          {"seconds", summary.seconds},
          {"down_s", summary.down_seconds},
          {"why", summary.why}};
}

int supervise(const RunCommand& options) {
  const SupervisedTraining training = supervised_training(options, "run");
  hold_stop_signals();
  Supervisor supervisor({.launcher = options.launcher,
                         .program = own_program(),
                         .args = options.words,
                         .ranks = training.ranks,
                         .max_restarts = options.max_restarts},
                        training.config);
  const SuperviseSummary summary = supervisor.run();
  if (options.json)
    print_once(json_line(summary_json(summary)));
  else if (summary.restarts > 0 && summary.why.empty())
    log::info("finished in {}, with {} that took {}; {} trained twice",
              duration_text(summary.seconds), counted(summary.restarts, "restart"),
              duration_text(summary.down_seconds), counted(summary.steps_repeated, "step"));
  if (!summary.why.empty()) log::warn("concertina run ends: {}", summary.why);
  return summary.code;
}

void add_run_options(CLI::App& app, RunCommand& options) {
  app.add_option("--max-restarts", options.max_restarts,
                 "as long as there are new checkpoints, if not given")
      ->check(whole_number(0, 1 << 30));
  add_supervised_options(app, options);
}

}  // namespace

Command command_run() {
  return make_command<RunCommand>(
      "train to the end: start again from the newest checkpoint after a fault", add_run_options,
      supervise);
}

}  // namespace concertina
