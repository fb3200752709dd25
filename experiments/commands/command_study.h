// `concertina study`: many trials of `train` from one file, and what came of them.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

// Its subcommands; each is a file study_<name>.cc and a line in command_study.cc's table.
Runner add_study_run(CLI::App& app);
Runner add_study_submit(CLI::App& app);
Runner add_study_trial(CLI::App& app);
Runner add_study_collect(CLI::App& app);
Runner add_study_scaling(CLI::App& app);
Runner add_study_table(CLI::App& app);
Runner add_study_report(CLI::App& app);
Runner add_study_plot(CLI::App& app);

/// --launcher of those that Slurm starts trials with.
void add_launcher_option(CLI::App& app, std::string& launcher);

Runner add_study(CLI::App& app);

}  // namespace concertina
