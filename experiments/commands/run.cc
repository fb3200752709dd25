// `concertina run`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/clock.h"
#include "core/host_name.h"
#include "core/process_state.h"
#include "experiments/commands/command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/launcher/child_process.h"
#include "experiments/launcher/slurm.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/persistent_state.h"
#include "experiments/supervise/host_pool.h"
#include "io/checkpoint/snapshot_file.h"

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

/// Reports to the supervisor if a rank of the run has been stopped on this host.
void check_for_stopped(const std::string& directory) {
  for (PersistentState stopped{.free_at = now()}; !stopped.exceeds(kStopLimit);
       std::this_thread::sleep_for(std::chrono::milliseconds(300))) {
    stopped.look(std::ranges::any_of(marked(directory), is_stopped), now());
    if (stopped.looks == 0) return;
  }
  append_fault(directory,
               {.kind = FaultKind::stopped,
                .what = fmt::format("a rank on {} has been stopped by a signal", host_name())});
}

/// Handles a supervisor's request, after which this host counts as available: kills the run's
/// leftover processes and removes snapshots that are no longer needed, or only reports its state.
int answer(const RunCommand& options) {
  if (options.look)
    check_for_stopped(options.here);
  else
    kill_marked(options.here);
  if (options.forget) remove_snapshots(snapshot_prefix(options.here));
  print_once(fmt::format("{}\n", HostPool::kAnswer));
  return 0;
}

int run(const RunCommand& options) {
  if (!options.here.empty()) return answer(options);
  SupervisedTraining training = supervised_training(options, "run");
  training.max_restarts = options.max_restarts;
  const SuperviseSummary summary = run_supervised(training, options.json);
  if (options.json) print_once(json_line(summary_json(summary)));
  const bool requested = summary.stopped_by == SIGUSR1 || summary.stopped_by == SIGTERM;
  if (requested && summary.code == static_cast<int>(Exit::preempted)) requeue_slurm_job();
  return summary.code;
}

void add_run_options(CLI::App& app, RunCommand& options) {
  app.add_option("--max-restarts", options.max_restarts,
                 "maximum number of restarts (default: unlimited while new checkpoints appear)")
      ->check(whole_number(0, 1 << 30));
  app.add_option("--here", options.here)->group("");
  app.add_flag("--forget", options.forget)->group("");
  app.add_flag("--look", options.look)->group("");
  add_supervised_options(app, options);
}

}  // namespace

Command command_run() {
  return make_command<RunCommand>(
      "train to the end, restarting from the newest checkpoint after faults", add_run_options, run);
}

}  // namespace concertina
