#include "experiments/commands/study/study_options.h"
#include "experiments/config/config_environment.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/study_overrides.h"
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

void add_launcher_option(CLI::App& app, std::string& launcher) {
  app.add_option("--launcher", launcher,
                 "launcher if the study's [launch] has no command: mpirun or srun (default: "
                 "mpirun)")
      ->type_name("NAME");
}

void add_study_folder(CLI::App& app, std::string& directory) {
  app.add_option("study", directory, "folder of the study, such as studies/NAME")
      ->type_name("STUDY")
      ->required();
}

void add_studies_directory(CLI::App& app, std::string& directory) {
  add_default_option(app, "--dir", directory, "directory in which to create the study's folder")
      ->type_name("DIR");
}

void add_study_file_options(CLI::App& app, StudyFileOptions& options, const std::string& does,
                            const std::string& shows) {
  app.add_option("study", options.file,
                 "study file (see studies.md), or folder of a study that was started")
      ->type_name("STUDY.toml|FOLDER")
      ->required();
  app.add_option(
         "--set,sets", options.sets,
         "config keys for all trials, overriding [set]; with several values (A,B, choice(A,B) "
         "or range(START,STOP,STEP)), an axis of the grid")
      ->type_name("TABLE.KEY=VALUE");
  add_studies_directory(app, options.directory);
  app.add_flag("--retry-failed", options.retry_failed, does + " failed and timed-out trials again");
  app.add_flag("--dry-run", options.dry_run, "print " + shows);
  add_json_option(app, options);
}

NamedStudy read_folder_study(const std::string& folder) {
  NamedStudy study{.spec = read_study_folder_spec(folder), .toml = {}, .folder = folder};
  study.toml = read_file(StudyPaths(folder, study.spec).study(), kMostStudyBytes);
  return study;
}

std::map<int, TrialRecord> stored_trials(const StudySpec& spec, const std::string& folder) {
  std::map<int, TrialRecord> stored;
  if (!std::filesystem::exists(StudyPaths(folder, spec).study())) return stored;
  require_same_study(folder, spec);
  for (const TrialRecord& trial : read_study(folder).trials) stored[trial.number] = trial;
  return stored;
}

NamedStudy read_named_study(const StudyFileOptions& options) {
  const bool began = std::filesystem::is_directory(options.file);
  options.excludes("--dir", "the folder of a study", began);
  if (began) {
    if (!options.sets.empty())
      throw_input("the keys of a started study cannot be changed", options.sets.front(),
                  "use the study's file with these keys and another --dir or `name`");
    return read_folder_study(options.file);
  }
  NamedStudy study;
  study.spec = read_study_file(options.file, study.toml, overrides_text(options.sets));
  const std::string& name = study.spec.name;
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw_input(fmt::format("'{}' is not a valid folder name", name), options.file,
                "name = \"NAME\"");
  study.folder = (std::filesystem::path(options.directory) / name).string();
  if (std::filesystem::exists(study.folder + "/" + kStudyFile)) {
    study.spec = grown_from(read_study_folder_spec(study.folder), std::move(study.spec));
    study.toml += grown_text(study.spec);
  }
  return study;
}

void require_no_launcher(const std::string& command) {
  if (expected_world_size() > 1)
    throw_input(
        "a study launches its trials itself", "command line",
        fmt::format("run concertina study {} without mpirun or srun; [launch] sets the launcher",
                    command));
  // They would override the keys of all trials.
  if (const Variables variables = environment_variables(); !variables.empty())
    throw_input("environment variables cannot set keys of a study's trials",
                "environment variable " + variables[0].first,
                fmt::format("unset {} and set the key in the study's file", variables[0].first));
}

void hold_study_signals() {
  hold_stop_signals();
  const sigset_t child = child_signal();
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

std::string stopped_text() {
  const int signal = stop_signal();
  return (signal == 0 ? "trials were interrupted" : "stopped by " + signal_text(signal)) +
         "; rerun the same command to continue: unfinished trials resume from their checkpoints\n";
}

void wait_for_trials() {
  const sigset_t child = child_signal();
  const timespec soon{.tv_sec = 0, .tv_nsec = 100'000'000};
  sigtimedwait(&child, nullptr, &soon);
}

}  // namespace concertina
