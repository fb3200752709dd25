// `concertina study trial`.
#include <fmt/format.h>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/launcher/slurm.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_run.h"
#include "experiments/study/trial_launch.h"

namespace concertina {
namespace {

struct StudyTrialCommand : CommandOptions {
  std::string study, launcher;
  int number = 0;
};

constexpr int kMostLostNodes = 10;  // if more are lost, the trial is at fault, not the nodes

StudyRunOptions trial_options(int number) {
  StudyRunOptions options{.program = own_program(), .cores = {}, .trial = number};
  if (const std::optional<int> restarts = slurm_restarts()) {
    options.requeued = true;
    options.grace = 1e9;  // Slurm itself enforces the time limit
    options.several_nodes = slurm_nodes() > 1 && *restarts < kMostLostNodes;
  }
  return options;
}

void require_trial(const StudySpec& spec, const StudyTrialCommand& options) {
  if (!method_of(spec.search).independent())
    throw_input("the trials of a search cannot run separately: each depends on finished trials",
                options.study, "`concertina study run`, which runs a search in one process");
  const std::vector<Trial> trials = trials_of(spec);
  if (options.number > static_cast<int>(trials.size()))
    throw_input(fmt::format("no trial {}", options.number), options.study,
                fmt::format("a number from 1 to {}", trials.size()));
}

int run_trial(const StudyTrialCommand& options) {
  require_no_launcher("trial");
  StudySpec spec = read_study_folder_spec(options.study);
  require_trial(spec, options);
  set_launcher(options.launcher, spec);
  spec.launch.jobs = 1;
  hold_study_signals();
  StudyFolder folder(options.study, spec, options.number);
  if (const auto found = folder.trials().find(options.number);
      found != folder.trials().end() && found->second.state != TrialState::open) {
    print_once(fmt::format("trial {} has already finished: {}\n", options.number,
                           name_of(found->second.state)));
    return 0;
  }
  require_launcher(spec);
  StudyRun run(spec, folder, trial_options(options.number));
  const StudySummary summary = run.run(stop_signal, wait_for_trials);
  if (!summary.run_by_others.empty())
    throw_input(summary.run_by_others.begin()->second, folder.paths().trial(options.number),
                "wait until it has finished, or stop it");
  if (summary.interrupted) {
    print_once(
        fmt::format("trial {} was stopped; rerun the same command to resume it\n", options.number));
    requeue_slurm_job();
    return static_cast<int>(Exit::preempted);
  }
  return static_cast<int>(summary.failed + summary.timed_out > 0 ? Exit::failure : Exit::ok);
}

void add_study_trial_options(CLI::App& app, StudyTrialCommand& options) {
  add_study_folder(app, options.study);
  app.add_option("number", options.number, "number of the trial, from 1")
      ->type_name("NUMBER")
      ->check(whole_number(1, 1 << 30))
      ->required();
  add_launcher_option(app, options.launcher);
}

}  // namespace

Command command_study_trial() {
  return make_command<StudyTrialCommand>(
      "run one trial from a study's folder, as tasks of the array job do", add_study_trial_options,
      run_trial);
}

}  // namespace concertina
