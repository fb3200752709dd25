// Options of commands whose work is done in Python: which study and trials, in which groups, and
// how these are compared.
#pragma once

#include <string>

#include "experiments/commands/python_command.h"

namespace concertina {

/// Adds the folders of a study or of runs, as positional arguments.
void add_study_folders(CLI::App& app);
/// Adds --equivalent and --alpha; `claim` completes "default: ".
void add_equivalent_options(CLI::App& app, const std::string& claim);
/// Adds --stopped and --mixed.
void add_trial_options(CLI::App& app);
/// Adds all options by which trials are chosen, grouped and compared.
void add_group_options(CLI::App& app, CommandOptions& options);
/// Throws Error{bad_input} for an option of add_group_options() that has no effect.
void require_group_options(const CommandOptions& options);

}  // namespace concertina
