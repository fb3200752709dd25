// The program `concertina` without its main().
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace CLI {
class App;
}

namespace concertina {

/// Runs the subcommand that the arguments name. Prints an Error to stderr and returns its exit code
/// (README, "Exit codes").
int run_program(int argc, char** argv);

/// The subcommand with that name, or null.
const CLI::App* subcommand_of(const CLI::App& app, std::string_view name);
/// The default subcommand of a group, such as `plan show` for `plan`, or null.
const CLI::App* default_subcommand(const CLI::App& app);

/// Name of each library in use, with its version if available.
nlohmann::ordered_json library_versions();

}  // namespace concertina
