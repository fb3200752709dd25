// Subcommands: their descriptions, their shared options and how they run.
// A subcommand is a file NAME.cc that defines command_NAME(), and an entry in meson.build's list.
// If NAME starts with a group's name (program.cc), it belongs to that group: schedule-draw is
// `schedule draw`.
// Invariant: parsing has no side effects; files are read and MPI starts when the command runs.
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
#include "experiments/run/best_commit.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Runs a parsed command and returns the exit code. The first call of `mpi.world()` starts MPI.
using Runner = std::function<int(MpiEnvironment& mpi)>;

struct Command {
  const char* help;
  /// Adds the options to `app`; the runner owns their values, which therefore outlive parsing.
  std::function<Runner(CLI::App& app)> add;
};

/// Base class of a command's options.
struct CommandOptions {
  const CLI::App* app = nullptr;  // the parsed command line
  bool json = false;

  /// Whether `option` is on the command line.
  bool given(const char* option) const { return app->count(option) > 0; }
  /// As with config keys, options without effect are errors. If `option` is given, needs() throws
  /// Error{bad_input} unless `other` is present (`there`), and excludes() throws if it is present.
  void needs(const char* option, const std::string& other, bool there) const;
  void excludes(const char* option, const std::string& other, bool there) const;
};

/// Options of a command that reads a config.
struct ConfigOptions : CommandOptions {
  std::vector<std::string> defaults;  // "table.key=value", set by the command
  std::vector<std::string> sources;   // "@file.toml", or a run directory for its config.toml
  std::vector<std::string> sets;      // "table.key=value"
  RunConfig config;                   // the result of load()
};

/// Adds the positional arguments, --set and --help-config. The latter throws CLI::CallForAllHelp
/// even if required arguments are missing.
void add_config_options(CLI::App& app, ConfigOptions& options);
void add_json_option(CLI::App& app, CommandOptions& options);
/// Adds --newest, for runs that keep their best checkpoint.
void add_choice_options(CLI::App& app, CheckpointChoice& choice);

/// Validators for an option's text, because CLI::Range accepts NaN and reads 010 as eight. They
/// accept a decimal integer from `low` to `high`, and a finite number in that range.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
CLI::Validator number(double low, double high);

/// Adds an option whose help shows the current value as its default.
template <class Value>
CLI::Option* add_default_option(CLI::App& app, const char* name, Value& value,
                                const std::string& help) {
  return app.add_option(name, value, help)->capture_default_str();
}

/// Applies defaults, sources from left to right, environment variables and --set, then validates. A
/// run directory DIR stands for DIR/config.toml, with run.dir and run.name set to its current
/// location.
RunConfig load(const ConfigOptions& options);

/// Throws Error{bad_input} unless a file can be created or replaced at `path`, the value of
/// `option`: not a device, a directory or a study record.
void require_output(const std::string& path, const std::string& option);
/// Throws Error{bad_input} with `fix` if `path` exists.
void require_nothing_at(const std::string& path, const std::string& fix);

/// Runs `body`. If `body` throws an error about a config key, adds the place where the key was set,
/// because the code that reports an error may know only the key.
int with_places(const RunConfig& config, const std::function<int()>& body);

/// Creates a command: allocates the options, lets `declare(app, options)` add them to the app, and
/// runs `body(options, mpi)`, with the config loaded for ConfigOptions. A body without an MPI
/// parameter runs on one process; under a launcher the other processes do nothing.
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

/// Like run_program() in program.h, for a program `name` with other commands.
int run_program(int argc, char** argv, const char* name, std::span<const Entry<Command>> commands);

}  // namespace concertina
