// Options for commands that are implemented in Python: selecting, grouping and comparing trials.
#pragma once

#include <string>

#include "experiments/commands/python_command.h"

namespace concertina {

/// Adds the folders of a study or of runs as positional arguments.
void add_study_folders(CLI::App& app);
/// Adds --equivalent and --alpha; `claim` is the default shown in the help.
void add_equivalent_options(CLI::App& app, const std::string& claim);
/// Adds --stopped and --mixed.
void add_trial_options(CLI::App& app);
/// Adds all options that select, group and compare trials.
void add_group_options(CLI::App& app, CommandOptions& options);
/// Throws Error{bad_input} for an option of add_group_options() that has no effect.
void require_group_options(const CommandOptions& options);

}  // namespace concertina
