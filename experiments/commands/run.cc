// `concertina run`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/host_name.h"
#include "core/log.h"
#include "core/number_text.h"
#include "core/process_state.h"
#include "experiments/commands/command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/launcher/slurm.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "experiments/supervise/supervisor.h"
#include "io/snapshot_file.h"

namespace concertina {
namespace {

struct RunCommand : SupervisedOptions {
  std::optional<int> max_restarts;
  std::string here;  // a run's directory
  bool forget = false, look = false;
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

/// Tells the supervisor if a rank of the run stands still here: a debugger, or somebody who looks
/// into it, stops it for less.
void look_for_stopped(const std::string& directory) {
  constexpr int kLooks = 5;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (std::ranges::none_of(marked(directory), stands_still)) return;
  }
  append_fault(directory,
               {{"fault", "stopped"},
                {"ranks", nlohmann::json::array()},
                {"what", fmt::format("a rank on {} stands still, and a signal has stopped it",
                                     host_name())}});
}

/// What a supervisor asks a host to do before it says that it is there: to end what a launch of the
/// run has left here, and to remove its snapshots if they are not wanted any more; or only to look.
int answer(const RunCommand& options) {
  if (options.look)
    look_for_stopped(options.here);
  else
    kill_marked(options.here);
  if (options.forget) remove_snapshots(snapshot_prefix(options.here));
  print_once(fmt::format("{}\n", HostPool::kAnswer));
  return 0;
}

int supervise(const RunCommand& options) {
  if (!options.here.empty()) return answer(options);
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
  app.add_flag("--look", options.look)->group("");
  add_supervised_options(app, options);
}

}  // namespace

Command command_run() {
  return make_command<RunCommand>(
      "train to the end: start again from the newest checkpoint after a fault", add_run_options,
      supervise);
}

}  // namespace concertina
