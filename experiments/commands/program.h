// The program `concertina` without its main().
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace CLI {
class App;
}

namespace concertina {

/// Finds the subcommand that the arguments name, runs it, and turns an Error into a message on
/// stderr and an exit code (README, "Exit codes").
int run_program(int argc, char** argv);

/// The subcommand of that name; null: there is none.
const CLI::App* subcommand_of(const CLI::App& app, std::string_view name);
/// The subcommand that `app` means where none is named, as `plan` is `plan show`; null: none.
const CLI::App* usual_subcommand(const CLI::App& app);

/// Name and version of each library in use, as far as it says.
nlohmann::ordered_json library_versions();

}  // namespace concertina
