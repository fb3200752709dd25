#include "experiments/commands/command_study.h"

#include <array>

namespace concertina {
namespace {

constexpr std::array kStudyCommands = {
    Command{"run", "run the trials of a study, or those that are left", add_study_run},
    Command{"submit", "the same on a cluster: an array job of Slurm, a task for each trial",
            add_study_submit},
    Command{"trial", "run one trial of a study's folder, as each task of the array job does",
            add_study_trial},
    Command{"collect", "write results.csv, and say where each trial stands", add_study_collect},
    Command{"scaling", "one config at several numbers of ranks: measured, and predicted beyond",
            add_study_scaling},
    Command{"table", "means, spread and differences over the trials of a study", add_study_table},
    Command{"plot", "a chart of a study: lines, bars, a heat map or a Pareto front",
            add_study_plot},
    Command{"report", "a page on a study: table, curves, times, trials", add_study_report},
};

}  // namespace

Runner add_study(CLI::App& app) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Runner>();
  for (const Command& command : kStudyCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->callback([chosen = chosen.get(), runner = command.add(*sub)] { *chosen = runner; });
  }
  // No process of a study starts MPI: under a launcher, too, one does it all.
  return [chosen](MpiEnvironment& mpi) { return launcher_rank() == 0 ? (*chosen)(mpi) : 0; };
}

}  // namespace concertina
