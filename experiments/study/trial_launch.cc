#include "experiments/study/trial_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr double kMostSeconds = 1e9;
constexpr std::array<std::string_view, 3> kStopSignals = {"USR1", "TERM", "INT"};

namespace fs = std::filesystem;

/// Whether the run has a checkpoint to resume from. Its processes have exited.
bool has_checkpoint(const std::string& run) {
  const std::string checkpoints = run_file(run, kCheckpointFolder);
  recover_commits(checkpoints);
  return newest_commit(checkpoints).has_value();
}

std::string template_of(const StudySpec& spec) {
  return spec.launch.command.empty() ? kDefaultLauncher : spec.launch.command;
}

std::vector<std::string> train_arguments(const StudyPaths& paths, int number) {
  std::vector<std::string> words = {"train"};
  for (const std::string& base : paths.base_files) words.push_back("@" + base);
  words.push_back("@" + paths.overrides(number));
  return words;
}

}  // namespace

LaunchSection read_launch(const TomlSource& source, const toml::node& node) {
  LaunchSection launch;
  TomlTable table(source, node, "launch");
  table.take("command", [&](const toml::node& value, const std::string& name) {
    launch.command = source.text(value, name);
    split_words(launch.command, source.place(value, name));
    if (launch.command.find("{args}") == std::string::npos)
      source.refuse(value, name, "the launcher's command has no placeholder for the program",
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

void set_launcher(const std::string& name, StudySpec& spec) {
  if (name.empty()) return;
  if (!spec.launch.command.empty())
    throw_input(fmt::format("--launcher {}, but the study defines a launcher", name),
                "launch.command", "remove one of them");
  if (name == "srun")
    spec.launch.command = "srun --mpi=pmix -n {ranks} {program} {args}";
  else if (name != "mpirun")
    throw_input(fmt::format("unknown launcher '{}'", name), "--launcher",
                "mpirun or srun, or any command in [launch]");
}

void require_launcher(const StudySpec& spec) {
  require_launcher(template_of(spec));
}

RunConfig launch_config(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task) {
  RunConfig config = config_of(spec, task.trial.settings);
  config.run.dir = paths.trial(task.trial.number);
  config.run.name = "run";
  if (task.steps > 0) {
    // The learning rate follows its schedule as if the run were not cut short.
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
  // Killed before its first checkpoint: move its log lines aside.
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
