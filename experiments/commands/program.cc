#include "experiments/commands/program.h"

#include <fmt/format.h>

#include <csignal>
#include <string_view>

#include "core/error.h"
#include "core/log.h"
#include "core/nearest.h"
#include "experiments/commands/command.h"
#include "experiments/commands/command_bench.h"
#include "experiments/commands/command_checkpoint.h"
#include "experiments/commands/command_completion.h"
#include "experiments/commands/command_data.h"
#include "experiments/commands/command_doctor.h"
#include "experiments/commands/command_eval.h"
#include "experiments/commands/command_generate.h"
#include "experiments/commands/command_plan.h"
#include "experiments/commands/command_report.h"
#include "experiments/commands/command_schedule.h"
#include "experiments/commands/command_study.h"
#include "experiments/commands/command_train.h"
#include "experiments/commands/command_verify.h"
#include "experiments/commands/exit.h"
#include "experiments/config/config_keys.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"

namespace concertina {
namespace {

constexpr Command kCommands[] = {
    {"train", "train a model, or go on where a run stopped", add_train},
    {"eval", "held-out loss of a run's newest checkpoint", add_eval},
    {"generate", "text from a run's newest checkpoint", add_generate},
    {"verify", "same bits at every layout and schedule, in one process", add_verify},
    {"checkpoint", "inspect, verify, import or export checkpoints", add_checkpoint},
    {"data", "prepare text, learn a tokenizer, see what files of data are", add_data},
    {"plan", "layout, memory and step time at any world size, without a launch", add_plan},
    {"schedule", "list, show, check or simulate pipeline schedules", add_schedule},
    {"study", "many runs from one file: ablations, searches, their results", add_study},
    {"report", "a page on a run: timelines predicted and measured, bubble, memory", add_report},
    {"bench", "measure this machine", add_bench},
    {"completion", "completion in the shell: a script for bash or zsh", add_completion},
    {"doctor", "check machine, launch and libraries", add_doctor},
};

/// The deepest subcommand that was named: its help is what the user wants to see.
CLI::App* innermost(CLI::App* app) {
  for (auto named = app->get_subcommands(); !named.empty(); named = app->get_subcommands())
    app = named.front();
  return app;
}

std::string command_path(CLI::App* app) {
  std::string path = app->get_name();
  for (app = app->get_parent(); app != nullptr; app = app->get_parent())
    path = app->get_name() + " " + path;
  return path;
}

[[noreturn]] void throw_usage(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* at = innermost(&app);
  std::vector<std::string> names;
  for (const CLI::App* sub : at->get_subcommands({})) names.push_back(sub->get_name());
  const std::vector<std::string> extra = at->remaining();
  if (!names.empty() && !extra.empty()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw_input(fmt::format("unknown subcommand '{}'", extra.front()), command_path(at),
                one_of(nearest_word(extra.front(), known), known));
  }
  const std::string help = fmt::format("{} --help", command_path(at));
  throw_input(error.what(), command_path(at),
              names.empty() ? help : fmt::format("{} (one of: {})", help, fmt::join(names, ", ")));
}

/// The version with the libraries in use, for `app` and every subcommand of it.
void add_version(CLI::App& app) {
  app.set_version_flag("--version", std::function<std::string()>([] {
                         std::string text = fmt::format("concertina {}\n", program_identity());
                         const nlohmann::ordered_json libraries = library_versions();
                         for (const auto& [name, version] : libraries.items())
                           text += fmt::format("  {} {}\n", name, version.get<std::string>());
                         return text;
                       }));
  for (CLI::App* sub : app.get_subcommands({})) add_version(*sub);
}

int run(int argc, char** argv, MpiEnvironment& mpi) {
  log::init(launcher_rank(), std::max(1, expected_world_size()));
  CLI::App app("Trains transformers over pipeline stages x data-parallel replicas.", "concertina");
  app.require_subcommand(1);
  Runner runner;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    sub->final_callback([&runner, add = command.add(*sub)] { runner = add; });
  }
  add_version(app);
  app.add_flag_callback(
      "--help-config", [] { throw CLI::CallForAllHelp(); },
      "print all config keys with type, default and meaning");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    CLI::App* at = innermost(&app);
    print_once(at->help(at == &app ? "" : command_path(at->get_parent())));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    print_once(version.what());
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    print_once(config_help());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw_usage(app, error);
  }
  return runner(mpi);
}

}  // namespace

int run_program(int argc, char** argv) {
  // Before anything takes time: a signal that comes now ends the run after its first step.
  if (argc > 1 && std::string_view(argv[1]) == "train") hold_stop_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the size limit is an error of write(), not a crash
  // Outlives every exception: leaving its scope with one would cut the message short.
  MpiEnvironment mpi;
  return run_to_exit(mpi, [&] { return run(argc, argv, mpi); });
}

}  // namespace concertina
