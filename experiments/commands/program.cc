#include "experiments/commands/program.h"

#include <fmt/format.h>
#include <spdlog/version.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <boost/version.hpp>

#include <csignal>
#include <cstdlib>

#include "command_table.h"
#include "core/backend.h"
#include "core/cuda/backend.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "core/log.h"
#include "core/registry.h"
#include "core/text/nearest.h"
#include "experiments/commands/command.h"
#include "experiments/config/config_keys.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "io/file.h"
#include "io/sha256.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {

CONCERTINA_COMMANDS(CONCERTINA_DECLARE, Command, command_)

namespace {

/// A group of commands, whose names in meson.build's list begin with "NAME-".
struct Group {
  const char* name;
  const char* help;
  const char* default_value = "";  // default subcommand
  const char* footer = "";         // footer in the help of the group and its commands
};
constexpr Group kGroups[] = {
    {"checkpoint", "inspect, verify, import or export checkpoints"},
    {"data", "prepare text, train a tokenizer, inspect and clean data files"},
    {"plan", "predict layouts, memory and step times for any number of ranks", "show"},
    {.name = "schedule",
     .help = "list, show, check or simulate pipeline schedules",
     .footer =
         "F: forward; I: input gradient, which the previous stage needs (B in the zero-bubble "
         "paper); W: weight gradient; B: I and W in one action."},
    {"study", "run many trials from one file (ablations, searches) and evaluate the results"},
    {"bench", "measure this machine"},
};

const Group* find_group(std::string_view name) {
  const auto* const found = std::ranges::find(kGroups, name, &Group::name);
  return found == std::end(kGroups) ? nullptr : found;
}

/// The app of the group that the command `name` belongs to. Shortens `name` to its last part, such
/// as "draw" for "schedule-draw".
CLI::App* parent_of(std::string& name, CLI::App& app) {
  const std::string first = name.substr(0, name.find('-'));
  const Group* group = find_group(first);
  if (group == nullptr || first == name) return &app;
  name.erase(0, first.size() + 1);
  for (CLI::App* there : app.get_subcommands({}))
    if (there->get_name() == first) return there;
  CLI::App* added = app.add_subcommand(first, group->help);
  added->require_subcommand(1)->footer(group->footer);
  return added;
}

/// Adds the commands of `table`. The command that is parsed sets `runner`.
void add_commands(std::span<const Entry<Command>> table, CLI::App& app, Runner& runner) {
  for (const auto& [full_name, command] : table) {
    std::string name(full_name);
    CLI::App* parent = parent_of(name, app);
    CLI::App* sub = parent->add_subcommand(name, command.help);
    sub->callback([&runner, add = command.add(*sub)] { runner = add; });
  }
}

/// Whether `word`, which is in the position of a subcommand, is a subcommand or may be a misspelled
/// one, as opposed to an option, config, key or path.
bool names_subcommand(const CLI::App& group, const std::string& word) {
  if (word == "-h" || word == "--help" || subcommand_of(group, word) != nullptr) return true;
  return !word.empty() && !word.starts_with('-') &&
         word.find_first_of("@=./") == std::string::npos && !exists_at(word);
}

/// The arguments, with the default subcommand inserted if only a group is named.
std::vector<std::string> full_words(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const CLI::App* group = words.empty() ? nullptr : subcommand_of(app, words[0]);
  const CLI::App* default_value = group == nullptr ? nullptr : default_subcommand(*group);
  if (default_value != nullptr && (words.size() < 2 || !names_subcommand(*group, words[1])))
    words.insert(words.begin() + 1, default_value->get_name());
  return words;
}

/// The innermost subcommand on the command line, whose help the user needs.
CLI::App* innermost(CLI::App* app) {
  for (auto named = app->get_subcommands(); !named.empty(); named = app->get_subcommands())
    app = named.front();
  return app;
}

std::string command_path(const CLI::App* app) {
  std::string path = app->get_name();
  for (app = app->get_parent(); app != nullptr; app = app->get_parent())
    path = app->get_name() + " " + path;
  return path;
}

/// Throws if another command in the group of `at` has this option.
void refuse_option_of_others(const CLI::App& at, const std::string& argument) {
  const std::string option = argument.substr(0, argument.find('='));
  const CLI::App* group = at.get_parent();
  if (!option.starts_with("--") || group == nullptr || group->get_parent() == nullptr) return;
  for (const CLI::App* other : group->get_subcommands({}))
    if (other->get_option_no_throw(option) != nullptr)
      throw_input(fmt::format("{} is an option of `{}`", option, command_path(other)),
                  command_path(&at), command_path(other) + " --help");
}

[[noreturn]] void throw_usage(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* at = innermost(&app);
  std::vector<std::string> names;
  for (const CLI::App* sub : at->get_subcommands({})) names.push_back(sub->get_name());
  const std::vector<std::string> extra = at->remaining();
  for (const std::string& argument : extra) refuse_option_of_others(*at, argument);
  if (!extra.empty() && extra.front().starts_with("--")) {
    std::vector<std::string> options;
    for (const CLI::Option* option : at->get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::string asked = extra.front().substr(0, extra.front().find('='));
    const std::vector<std::string_view> known(options.begin(), options.end());
    const std::string near(nearest_word(asked, known));
    throw_input(fmt::format("unknown option '{}'", asked), command_path(at),
                fmt::format("{}{} --help", near.empty() ? "" : near + "; or ", command_path(at)));
  }
  if (!names.empty() && !extra.empty()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw_input(fmt::format("unknown subcommand '{}'", extra.front()), command_path(at),
                one_of(nearest_word(extra.front(), known), known));
  }
  const std::string help = fmt::format("{} --help", command_path(at));
  throw_input(error.what(), command_path(at),
              names.empty() ? help : fmt::format("{} (one of: {})", help, fmt::join(names, ", ")));
}

/// Adds --version, which lists the libraries in use, to `app` and all its subcommands.
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

int run(int argc, char** argv, const char* name, std::span<const Entry<Command>> commands,
        MpiEnvironment& mpi) {
  log::init(launcher_rank(), std::max(1, expected_world_size()));
  CLI::App app(
      "Trains transformers with pipeline stages x data-parallel replicas. Runs are elastic: layers "
      "can be frozen, the layout can change between steps, and a run can resume with any layout, "
      "with bit-identical results.",
      name);
  app.require_subcommand(1);
  Runner runner;
  add_commands(commands, app, runner);
  add_version(app);
  app.add_flag_callback(
      "--help-config", [] { throw CLI::CallForAllHelp(); },
      "print all config keys with types, defaults and meanings");
  try {
    std::vector<std::string> words = full_words(app, argc, argv);
    std::ranges::reverse(words);  // the order that CLI11 expects
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    CLI::App* at = innermost(&app);
    const std::string help = at->help(at == &app ? "" : command_path(at->get_parent()));
    print_once(::isatty(STDOUT_FILENO) == 1 ? wrapped(help, terminal_columns(stdout)) : help);
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

const CLI::App* subcommand_of(const CLI::App& app, std::string_view name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

const CLI::App* default_subcommand(const CLI::App& app) {
  const Group* group = find_group(app.get_name());
  return group == nullptr ? nullptr : subcommand_of(app, group->default_value);
}

nlohmann::ordered_json library_versions() {
  nlohmann::ordered_json list{
      {"mpi", mpi_library()},
      {"cpu_backend", make_cpu_backend(1)->describe()},
      {"boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                            BOOST_VERSION % 100)},
      {"toml++", fmt::format("{}.{}.{}", TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)},
      {"hdf5", hdf5_version()},
      {"openssl", openssl_version()},
      {"CLI11", CLI11_VERSION},
      {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                    NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"spdlog", fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)}};
  if (const std::string status = cuda::products_status(); !status.empty())
    list["cuBLASLt"] = status;
  if (const std::string status = cuda::dnn_status(); !status.empty()) list["cuDNN"] = status;
  if (const std::string status = nccl_status(); !status.empty()) list["NCCL"] = status;
  return list;
}

int run_program(int argc, char** argv) {
  const Entry<Command> table[] = {CONCERTINA_COMMANDS(CONCERTINA_ENTRY, Command, command_)};
  return run_program(argc, argv, "concertina", table);
}

int run_program(int argc, char** argv, const char* name, std::span<const Entry<Command>> commands) {
  // Block signals before slow work: an early signal then stops the run after its first step.
  if (argc > 1 && std::string_view(argv[1]) == "train") hold_stop_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // write() fails at the file-size limit; the program is not killed
  // Must outlive every exception: destroying it earlier would truncate the error message.
  MpiEnvironment mpi;
  const int code = run_to_exit(mpi, [&] {
    if (const char* faults = std::getenv(kFailpointsVariable)) arm_failpoints(faults);
    return run(argc, argv, name, commands, mpi);
  });
  mpi.leave(code);
  return code;
}

}  // namespace concertina
