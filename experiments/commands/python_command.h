// Subcommands that read finished files or drive other programs: this program declares and checks
// their options, and a module of the Python package (experiments/python) does the work.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/commands/command.h"

namespace concertina {

/// Replaces this process by `python3 .../concertina --parsed NAME --OPTION=VALUE...`, where NAME is
/// the path of `app` ("study-table") and also the module with its main(). Every option has one word
/// per value: the value in `resolved`, else what was given, else the default. The variable
/// CONCERTINA has the path of this program. Throws Error{bad_input} where there is no python3.
int run_in_python(const CLI::App& app, const std::map<std::string, std::string>& resolved = {});

/// Runs the module `name` with these options to its end, and gives it `data` as its input. Returns
/// its exit code: where that is not 0, it has printed why.
int call_python(const std::string& name, const std::map<std::string, std::string>& options,
                 const nlohmann::ordered_json& data);

}  // namespace concertina
