#include "experiments/study/trial_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/machine/program.h"
#include "io/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr double kMostSeconds = 1e9;
constexpr std::array<std::string_view, 3> kStopSignals = {"USR1", "TERM", "INT"};

/// Whether `name`, in the braces that open at `open`, can only be meant as a placeholder.
bool is_placeholder(const std::string& word, std::size_t open, const std::string& name) {
  const bool letters = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return letters && (open == 0 || word[open - 1] != '$');
}

/// `word` with each {name} replaced.
std::string filled(const std::string& word, const std::map<std::string, std::string>& values) {
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t open = word.find('{', at);
    const std::size_t close = open == std::string::npos ? open : word.find('}', open);
    if (close == std::string::npos) return text + word.substr(at);
    const std::string name = word.substr(open + 1, close - open - 1);
    const auto found = values.find(name);
    if (found == values.end() && is_placeholder(word, open, name))
      throw_input(fmt::format("the launcher has {{{}}}, which stands for nothing", name),
                  "launch.command",
                  fmt::format("{{ranks}}, {{program}} and {{args}}; where a shell is to see the "
                              "braces: {{ {} }}",
                              name));
    // Braces of a shell's own stay.
    text += word.substr(at, open - at) +
            (found == values.end() ? word.substr(open, close - open + 1) : found->second);
    at = close + 1;
  }
  return text;
}

namespace fs = std::filesystem;

/// Whether the run left a checkpoint to go on from. Its processes have ended.
bool has_checkpoint(const std::string& run) {
  const std::string checkpoints = run_file(run, kCheckpointFolder);
  recover_commits(checkpoints);
  return newest_commit(checkpoints).has_value();
}

std::string template_of(const StudySpec& spec) {
  return spec.launch.command.empty() ? kUsualLauncher : spec.launch.command;
}

std::vector<std::string> train_arguments(const StudyPaths& paths, int number) {
  std::vector<std::string> words = {"train"};
  for (const std::string& base : paths.base_files) words.push_back("@" + base);
  words.push_back("@" + paths.overrides(number));
  return words;
}

/// The variables that experiments/env.sh sets for Open MPI, as far as the environment does not say
/// it already: more ranks than cores are allowed, no rank is bound to a core, root may launch.
std::map<std::string, std::string> launch_environment() {
  std::map<std::string, std::string> variables = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                                  {"OMPI_MCA_mpi_yield_when_idle", "1"},
                                                  {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
  if (geteuid() == 0)
    variables.insert({{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  std::erase_if(variables,
                [](const auto& entry) { return std::getenv(entry.first.c_str()) != nullptr; });
  return variables;
}

}  // namespace

std::vector<std::string> split_words(const std::string& command, const std::string& where) {
  std::vector<std::string> words;
  bool open = false;  // a word has begun
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    else if (c == '\\' && quote != '\'' && i + 1 < command.size())
      words.back() += command[++i];
    else
      words.back() += c;
  }
  if (quote != 0) throw_input("a quote is not closed", where, command + quote);
  if (words.empty()) throw_input("there is no command", where, kUsualLauncher);
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

std::vector<std::string> launch_words(const std::string& command, int ranks,
                                      const std::string& program,
                                      const std::vector<std::string>& args) {
  const std::map<std::string, std::string> values = {
      {"ranks", std::to_string(ranks)}, {"program", program}, {"args", shell_line(args)}};
  std::vector<std::string> words;
  for (const std::string& word : split_words(command, "launch.command"))
    if (word == "{args}")
      words.insert(words.end(), args.begin(), args.end());
    else
      words.push_back(filled(word, values));
  return words;
}

LaunchSection read_launch(const TomlSource& source, const toml::node& node) {
  LaunchSection launch;
  TomlTable table(source, node, "launch");
  table.take("command", [&](const toml::node& value, const std::string& name) {
    launch.command = source.text(value, name);
    split_words(launch.command, source.place(value, name));
    if (launch.command.find("{args}") == std::string::npos)
      source.refuse(value, name, "the launcher has no place for what it starts",
                    "\"mpirun -n {ranks} {program} {args}\"");
  });
  table.whole("ranks", 1, kMostTrialRanks, launch.ranks);
  table.whole("jobs", 1, 1 << 16, launch.jobs);
  table.number("time_limit", 0, kMostSeconds, launch.time_limit);
  table.number("launcher_limit", 0, kMostSeconds, launch.launcher_limit);
  table.take("stop_signal", [&](const toml::node& value, const std::string& name) {
    launch.stop_signal = source.choice(value, name, kStopSignals);
  });
  table.finish();
  return launch;
}

void require_launcher(const StudySpec& spec) {
  const std::string launcher = launch_words(template_of(spec), 1, "{program}", {})[0];
  if (launcher != "{program}" && find_program(launcher).empty())
    throw_input(fmt::format("the launcher '{}' is not there, or cannot be executed", launcher),
                "launch.command",
                "a program on PATH, or its path: \"mpirun -n {ranks} {program} {args}\"");
}

RunConfig launch_config(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task) {
  RunConfig config = config_of(spec, task.trial.settings);
  config.run.dir = paths.trial(task.trial.number);
  config.run.name = "run";
  if (task.steps > 0) {
    // The learning rate goes its way as if the run were to reach its end.
    if (config.lr.steps == 0) config.lr.steps = config.run.steps;
    config.run.steps = task.steps;
  }
  validate(config);
  return config;
}

std::string launch_digest(RunConfig config) {
  config.run.dir = RunSection().dir;
  config.run.name = RunSection().name;
  return sha256_hex(write_config(config));
}

void write_overrides(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                     const RunConfig& config) {
  std::map<std::string, std::map<std::string, std::string>> sections;
  const auto add = [&](const std::string& key) {
    const Key* found = find_key(key);
    if (found == nullptr) return;  // ranks
    const std::size_t dot = key.find('.');
    sections[key.substr(0, dot)][key.substr(dot + 1)] = value_text(*found, config);
  };
  for (const char* key : {"run.dir", "run.name", "generate.tokens"}) add(key);
  if (task.steps > 0)
    for (const char* key : {"run.steps", "lr.steps"}) add(key);
  for (const Settings* settings : {&spec.set, &task.trial.settings})
    for (const auto& [key, value] : *settings) add(key);
  std::string text;
  for (const auto& [section, keys] : sections) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    for (const auto& [key, value] : keys) text += fmt::format("{} = {}\n", key, value);
  }
  atomic_replace(paths.overrides(task.trial.number), text);
}

ChildOptions trial_child(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                         const RunConfig& config, const std::string& program,
                         std::vector<int> cpus) {
  std::vector<std::string> arguments = train_arguments(paths, trial.number);
  const std::string run = paths.run(trial.number);
  // Killed before its first checkpoint: its log lines are moved aside.
  if (fs::exists(run_file(run, kMetricsFile)) && !has_checkpoint(run))
    arguments.emplace_back("--from-scratch");
  return {
      .process = {.words = launch_words(template_of(spec), ranks_of(spec, trial.settings, config),
                                        program, arguments),
                  .environment = launch_environment(),
                  .cpus = std::move(cpus)},
      .log = paths.log(trial.number),
      .mark = trial_mark(paths, trial.number),
      .program = program};
}

std::string trial_mark(const StudyPaths& paths, int number) {
  return fs::absolute(paths.trial(number)).lexically_normal().string();
}

std::string launch_line(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                        const std::string& program) {
  const int ranks = ranks_of(spec, trial.settings, config_of(spec, trial.settings));
  std::string line;
  for (const std::string& word :
       launch_words(template_of(spec), ranks, program, train_arguments(paths, trial.number)))
    line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace concertina
