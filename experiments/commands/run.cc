// `concertina run`.
#include <fmt/format.h>

#include <csignal>

#include "core/log.h"
#include "core/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/launcher/slurm.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "experiments/supervise/supervisor.h"
#include "io/snapshot_file.h"

namespace concertina {
namespace {

struct RunCommand : SupervisedOptions {
  std::optional<int> max_restarts;
  std::string here;  // a run's directory
  bool forget = false;
};

nlohmann::ordered_json summary_json(const SuperviseSummary& summary) {
  return {{"exit", summary.code},
          {"restarts", summary.restarts},
          {"in_place", summary.in_place},
          {"steps_repeated", summary.steps_repeated},
          {"seconds", summary.seconds},
          {"down_s", summary.down_seconds},
          {"why", summary.why}};
}

/// What a supervisor asks a host: ends what a launch of the run has left here, removes its
/// snapshots if they are not wanted any more, and says that it is there.
int answer(const std::string& directory, bool forget) {
  kill_marked(directory);
  if (forget) remove_snapshots(snapshot_prefix(directory));
  print_once(fmt::format("{}\n", HostPool::kAnswer));
  return 0;
}

int supervise(const RunCommand& options) {
  if (!options.here.empty()) return answer(options.here, options.forget);
  const SupervisedTraining training = supervised_training(options, "run");
  hold_stop_signals();
  Supervisor supervisor({.launcher = training.launcher,
                         .program = own_program(),
                         .args = options.words,
                         .ranks = training.ranks,
                         .hosts = training.hosts,
                         .max_restarts = options.max_restarts},
                        training.config);
  const SuperviseSummary summary = supervisor.run();
  if (options.json)
    print_once(json_line(summary_json(summary)));
  else if (summary.restarts + summary.in_place > 0 && summary.why.empty())
    log::info("finished in {}, with {} that took {}{}; {} trained twice",
              duration_text(summary.seconds), counted(summary.restarts, "restart"),
              duration_text(summary.down_seconds),
              summary.in_place > 0 ? fmt::format(", and {} without one", summary.in_place) : "",
              counted(summary.steps_repeated, "step"));
  if (!summary.why.empty()) log::warn("concertina run ends: {}", summary.why);
  const bool told = summary.stopped_by == SIGUSR1 || summary.stopped_by == SIGTERM;
  if (told && summary.code == static_cast<int>(Exit::preempted)) requeue_slurm_job();
  return summary.code;
}

void add_run_options(CLI::App& app, RunCommand& options) {
  app.add_option("--max-restarts", options.max_restarts,
                 "as long as there are new checkpoints, if not given")
      ->check(whole_number(0, 1 << 30));
  app.add_option("--here", options.here)->group("");
  app.add_flag("--forget", options.forget)->group("");
  add_supervised_options(app, options);
}

}  // namespace

Command command_run() {
  return make_command<RunCommand>(
      "train to the end: start again from the newest checkpoint after a fault", add_run_options,
      supervise);
}

}  // namespace concertina
