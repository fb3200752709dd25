// Subcommands that read finished files or drive other programs: the options are declared and
// checked here, and a module of the Python package (experiments/python) does the work.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/commands/command.h"

namespace concertina {

/// Adds an option that is passed on as text; `type` is its value name in the help.
CLI::Option* add_text_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help);
/// Adds an option for comma-separated values.
CLI::Option* add_list_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help);
/// Adds an option that may be repeated, with one value each.
CLI::Option* add_repeated_option(CLI::App& app, const std::string& name, const char* type,
                                 const std::string& help);

/// Adds a flag that is passed on.
void add_passed_flag(CLI::App& app, const std::string& name, const std::string& help);

/// Replaces this process with `python3 .../concertina --parsed NAME --OPTION=VALUE...`. NAME is the
/// command of `app` ("study-table"), whose module's main() runs. Each option is passed once per
/// value, taken from `resolved`, the command line or the default, in this order. Sets the variable
/// CONCERTINA to the path of this program. Throws Error{bad_input} if python3 is missing.
int run_in_python(const CLI::App& app, const std::map<std::string, std::string>& resolved = {});

/// The same for a command that passes on all its options. Throws Error{bad_input} for an --alpha
/// without effect, or if --out, given or by default, is a path to which no file can be written.
int run_passed(const CommandOptions& options);

/// Runs the module `name` with these options and `data` as its input. Returns its exit code; the
/// module prints its errors.
int call_python(const std::string& name, const std::map<std::string, std::string>& options,
                const nlohmann::ordered_json& data);
/// Does the same for the command of `app` (see run_in_python()), with `more` as extra options.
int call_python(const CLI::App& app, const nlohmann::ordered_json& data,
                const std::map<std::string, std::string>& more = {});

// Options for selecting, grouping and comparing trials (group_options.cc).

/// Adds the folders of a study or of runs as positional arguments.
void add_study_folders(CLI::App& app);
/// Adds --equivalent and --alpha.
void add_equivalent_options(CLI::App& app);
/// Adds --stopped and --mixed.
void add_trial_options(CLI::App& app);
/// Adds all options that select, group and compare trials.
void add_group_options(CLI::App& app, CommandOptions& options);

}  // namespace concertina
