// A subcommand: its description, the options that several have, and how its body runs.
// A subcommand is a file NAME.cc that defines command_NAME(), and a word in the list of
// meson.build. Where NAME begins as a group does (program.cc), it hangs below it: schedule-draw is
// `schedule draw`.
// Invariant: parsing touches nothing outside; whatever reads files or starts MPI happens when the
// command runs.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "experiments/config/config.h"
#include "experiments/machine/output.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Runs a parsed command and returns the exit code. MPI starts with the first `mpi.world()`.
using Runner = std::function<int(MpiEnvironment& mpi)>;

struct Command {
  const char* help;
  /// Adds the options to `app`; the runner owns them, so that they outlive the parsing.
  std::function<Runner(CLI::App& app)> add;
};

/// The options of a command derive from this.
struct CommandOptions {
  const CLI::App* app = nullptr;  // as parsed
  bool json = false;

  /// Whether `option` is on the command line.
  bool given(const char* option) const { return app->count(option) > 0; }
  /// An option without effect is an error, as a key of a config is: both throw Error{bad_input} if
  /// `option` is given, the one unless `other` is `there`, the other if it is.
  void needs(const char* option, const std::string& other, bool there) const;
  void excludes(const char* option, const std::string& other, bool there) const;
};

/// The options of a command that reads a config.
struct ConfigOptions : CommandOptions {
  std::vector<std::string> defaults;  // "table.key=value", of the command itself
  std::vector<std::string> sources;   // "@file.toml", or a run directory for its config.toml
  std::vector<std::string> sets;      // "table.key=value"
  RunConfig config;                   // from the above, once load() is through
};

/// The positional arguments, --set and --help-config (which throws CLI::CallForAllHelp, whatever
/// else is missing); --json where the command prints figures.
void add_config_options(CLI::App& app, ConfigOptions& options);
void add_json_option(CLI::App& app, CommandOptions& options);
/// --newest: of a run that keeps its best checkpoint.
void add_newest_option(CLI::App& app, bool& newest);

/// Checks an option's value as it is written: CLI::Range lets NaN through, and reads 010 as eight.
/// A whole number in decimal digits, from `low` to `high`; a finite number, likewise.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
CLI::Validator number(double low, double high);

/// Defaults, sources from left to right, the environment's keys, then --set; validated. A run
/// directory DIR means DIR/config.toml with run.dir and run.name set to where DIR is now.
RunConfig load(const ConfigOptions& options);

/// Throws Error{bad_input} unless a file can be made, or replaced, at `path`, which `option` names:
/// it is no device or directory, and no record of a study.
void require_output(const std::string& path, const std::string& option);
/// Throws Error{bad_input} with `fix` if there is something at `path`.
void require_nothing_at(const std::string& path, const std::string& fix);

/// Runs `body`. An error of its that is about a config key leaves with the place where that key was
/// set: whoever finds the error may know the key alone.
int with_places(const RunConfig& config, const std::function<int()>& body);

/// A command: makes the options, lets `declare(app, options)` add its own to the app, and runs
/// `body(options, mpi)`, of ConfigOptions once the config is loaded. A body that takes no MPI runs
/// on one process: under a launcher the others do nothing.
template <class Options, class Declare, class Body>
Command make_command(const char* help, Declare declare, Body body) {
  constexpr bool kReadsConfig = std::is_base_of_v<ConfigOptions, Options>;
  return {help, [declare, body](CLI::App& app) -> Runner {
            auto options = std::make_shared<Options>();
            options->app = &app;
            if constexpr (kReadsConfig) add_config_options(app, *options);
            declare(app, *options);
            return [options, body](MpiEnvironment& mpi) {
              const auto run = [&] {
                if constexpr (std::is_invocable_v<Body, const Options&, MpiEnvironment&>)
                  return body(*options, mpi);
                else
                  return launcher_rank() == 0 ? body(*options) : 0;
              };
              if constexpr (kReadsConfig) {
                options->config = load(*options);
                return with_places(options->config, run);
              } else {
                return run();
              }
            };
          }};
}

/// As run_program() of program.h, for a program `name` with these commands in place of this one's.
int run_program(int argc, char** argv, const char* name, std::span<const Entry<Command>> commands);

}  // namespace concertina
