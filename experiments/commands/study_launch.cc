#include "experiments/commands/study_launch.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostStudyBytes = 16 << 20;

sigset_t child_signal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return child;
}

}  // namespace

namespace {

/// What the study's copy of its file says beside the file. Sorted: their order says nothing.
std::string overrides_text(const std::vector<std::string>& sets) {
  std::map<std::string, std::string> lines;
  for (const std::string& set : sets) {
    RunConfig scratch;
    set_config(set, scratch);
    const std::string key = set.substr(0, set.find('='));
    lines[key] = value_text(*find_key(key), scratch);
  }
  std::string text = lines.empty() ? "" : "\n# from the command line\n[override]\n";
  for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
  return text;
}

}  // namespace

void add_set_options(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set,sets", sets, "config keys of all trials, in place of those of [set]")
      ->type_name("TABLE.KEY=VALUE");
}

NamedStudy read_named_study(const std::string& path, const std::string& directory,
                            const std::vector<std::string>& sets) {
  NamedStudy study;
  if (std::filesystem::is_directory(path)) {
    if (!sets.empty())
      throw_input("the keys of a study that has begun stay as they are", sets.front(),
                  "the study's file with these keys, and another --dir or `name`");
    study.spec = read_study_folder_spec(path);
    study.toml = read_file(StudyPaths(path, study.spec).study(), kMostStudyBytes);
    study.folder = path;
    return study;
  }
  study.spec = read_study_file(path, study.toml, overrides_text(sets));
  const std::string& name = study.spec.name;
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw_input(fmt::format("'{}' is no name of a folder", name), path, "name = \"NAME\"");
  study.folder = (std::filesystem::path(directory) / name).string();
  return study;
}

void require_no_launcher(const std::string& command) {
  if (expected_world_size() > 1)
    throw_input(
        "a study launches its trials itself", "command line",
        fmt::format("concertina study {} without mpirun or srun; [launch] has their launcher",
                    command));
}

void hold_study_signals() {
  hold_stop_signals();
  const sigset_t child = child_signal();
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

void wait_for_trials() {
  const sigset_t child = child_signal();
  const timespec soon{.tv_sec = 0, .tv_nsec = 100'000'000};
  sigtimedwait(&child, nullptr, &soon);
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace concertina
