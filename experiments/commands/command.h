// What the subcommands share: their common options, and how main finds them.
// Invariant: parsing touches nothing outside; whatever reads files or starts MPI happens when the
// command runs. A subcommand is one file command_<name>.cc and one line in main.cc's table.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "experiments/config/config.h"
#include "experiments/run/output.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Runs a parsed command and returns the exit code. MPI starts with the first `mpi.world()`.
using Runner = std::function<int(MpiEnvironment& mpi)>;

struct Command {
  const char* name;
  const char* help;
  /// Adds the options to `app`; the runner owns them, so that they outlive the parsing.
  Runner (*add)(CLI::App& app);
};

struct CommonOptions {
  std::vector<std::string> defaults;  // "table.key=value", of the command itself
  std::vector<std::string> sources;   // "@file.toml", or a run directory for its config.toml
  std::vector<std::string> sets;      // "table.key=value"
  bool json = false;
  RunConfig config;  // from the above, once load() is through
};

/// The positional arguments, --set and --help-config (which throws CLI::CallForAllHelp, whatever
/// else is missing); --json where the command prints figures.
void add_config_options(CLI::App& app, CommonOptions& options);
void add_json_option(CLI::App& app, CommonOptions& options);

/// Option values that are checked as they are written: CLI::Range lets NaN through, and reads 010
/// as eight. A whole number in decimal digits, from `low` to `high`; a finite number, likewise.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
CLI::Validator number(double low, double high);

/// Defaults, sources from left to right, then --set; validated. A run directory DIR means
/// DIR/config.toml with run.dir and run.name set to where DIR is now.
RunConfig load(const CommonOptions& options);

/// Throws Error{bad_input} unless a file can be made, or replaced, at `path`, which `option` names:
/// it is no device or directory, and no record of a study.
void require_output(const std::string& path, const std::string& option);
/// Throws Error{bad_input} with `fix` if there is something at `path`.
void require_nothing_at(const std::string& path, const std::string& fix);

/// Runs `body`. An error of its that is about a config key leaves with the place where that key was
/// set: whoever finds the error may know the key alone.
int with_places(const RunConfig& config, const std::function<int()>& body);

/// What `Command::add` may call: makes the options, lets `declare` add its own to the app, and runs
/// `body` once the config is loaded.
template <class Options>
Runner with_config(CLI::App& app, void (*declare)(CLI::App&, Options&),
                   int (*body)(const Options&, MpiEnvironment&)) {
  auto options = std::make_shared<Options>();
  add_config_options(app, *options);
  declare(app, *options);
  return [options, body](MpiEnvironment& mpi) {
    options->config = load(*options);
    return with_places(options->config, [&] { return body(*options, mpi); });
  };
}

}  // namespace concertina
