// `concertina soak`: declares the options; experiments/python/concertina/commands/soak.py does the
// work.
#include <fmt/format.h>

#include "experiments/commands/python_command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/machine/program.h"

namespace concertina {
namespace {

int run_soak(const SupervisedOptions& options) {
  const SupervisedTraining training = supervised_training(options, "soak");
  return run_in_python(*options.app, {{"checkpoints", training.config.checkpoint.dir},
                                      {"executable", executable_of(own_program())},
                                      {"hosts", hosts_text(training.hosts)},
                                      {"launcher", training.launcher},
                                      {"ranks", fmt::format("{}", training.ranks)},
                                      {"run", training.config.run.name}});
}

void add_soak_options(CLI::App& app, SupervisedOptions& options) {
  add_list_option(
      app, "--faults", "KIND,...",
      "kinds of faults to inject (default: all that are possible): kill (SIGKILL to a rank), stop "
      "(SIGSTOP to a rank), terminate (SIGTERM to a rank), hang-up (SIGHUP to a rank, as from a "
      "lost terminal), cpu-limit (SIGXCPU to a rank, as from a batch system), node (SIGKILL to all "
      "ranks of a host), freeze (SIGSTOP to all ranks), launcher (SIGKILL to the launcher), "
      "stop-launcher (SIGSTOP to the launcher), supervisor (SIGKILL to `concertina run`, which "
      "is restarted), save (SIGKILL to a rank while a checkpoint is written), bit-flip (a "
      "flipped bit in the newest checkpoint, and SIGKILL to a rank), partition (a host is "
      "disconnected for a few seconds), power-off (a host fails and returns), slow-link (a host's "
      "link is slow for a few seconds), full-disk (the checkpoint disk is full for a few seconds), "
      "slow-disk (the checkpoint disk does not respond for a few seconds)");
  add_text_option(app, "--mean", "FLOAT", "mean time between two faults in seconds")
      ->check(number(0.01, 1e6))
      ->default_str("15");
  add_text_option(app, "--for", "FLOAT", "seconds during which faults are injected")
      ->check(number(0, 1e7))
      ->default_str("180");
  add_text_option(app, "--at-most", "INT", "maximum number of faults (default: unlimited)")
      ->check(whole_number(0, 1 << 30));
  add_text_option(app, "--seed", "UINT", "random seed for the kinds and times of faults")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->default_str("1");
  add_text_option(app, "--out", "DIR",
                  "new folder for both runs and the report (default: soaks/<run.name>)");
  add_text_option(
      app, "--host-faults", "CMD",
      "command that applies cut, mend, power-off, slow or fast to the HOST in its last argument");
  add_text_option(app, "--disk-faults", "CMD",
                  "command that applies full, free, slow or fast to checkpoint.dir's disk");
  add_supervised_options(app, options);
}

}  // namespace

Command command_soak() {
  return make_command<SupervisedOptions>(
      "inject random faults into a run and report the outcome of each", add_soak_options, run_soak);
}

}  // namespace concertina
