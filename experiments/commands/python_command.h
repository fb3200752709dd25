// Subcommands that read finished files or drive other programs: this program declares and checks
// their options, and a module of the Python package (experiments/python) does the work.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/commands/command.h"

namespace concertina {

/// Adds an option that is passed on as text; `type` names its value in the help.
CLI::Option* add_text_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help);
/// Adds an option of values that are separated by commas.
CLI::Option* add_list_option(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help);
/// Adds an option that may be repeated, with one value each time.
CLI::Option* add_repeated_option(CLI::App& app, const std::string& name, const char* type,
                                 const std::string& help);

/// Adds a flag that is passed on.
void add_passed_flag(CLI::App& app, const std::string& name, const std::string& help);

/// Throws Error{bad_input} if `option` was given, or has a default, and no file can be written
/// there.
void require_passed_output(const CLI::App& app, const std::string& option);

/// Replaces this process by `python3 .../concertina --parsed NAME --OPTION=VALUE...`, where NAME is
/// the path of `app` ("study-table") and also the module with its main(). Every option has one word
/// per value: the value in `resolved`, else what was given, else the default. The variable
/// CONCERTINA has the path of this program. Throws Error{bad_input} where there is no python3.
int run_in_python(const CLI::App& app, const std::map<std::string, std::string>& resolved = {});

/// Runs the module `name` with these options to its end, and gives it `data` as its input. Returns
/// its exit code: where that is not 0, it has printed why.
int call_python(const std::string& name, const std::map<std::string, std::string>& options,
                const nlohmann::ordered_json& data);
/// The same with the module and options of `app`, as run_in_python() passes them, and `more`.
int call_python(const CLI::App& app, const nlohmann::ordered_json& data,
                const std::map<std::string, std::string>& more = {});

}  // namespace concertina
