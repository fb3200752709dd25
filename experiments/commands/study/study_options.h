// Shared by commands that launch or submit study trials.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/commands/command.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "experiments/study/study_spec.h"

namespace concertina {

/// Adds --launcher, the name of the launcher that starts the ranks of trials under Slurm.
void add_launcher_option(CLI::App& app, std::string& launcher);

/// Adds the study's folder as the first argument.
void add_study_folder(CLI::App& app, std::string& directory);

/// Adds --dir, the parent directory of the study's folder.
void add_studies_directory(CLI::App& app, std::string& directory);

/// Options for commands that create a study's folder from its file, or continue in it.
struct StudyFileOptions : CommandOptions {
  std::string file, directory = "studies";
  std::vector<std::string> sets;
  bool retry_failed = false, dry_run = false;
};
/// Adds the study's file, keys for all trials, --dir, --retry-failed, --dry-run and --json. `does`
/// is a verb such as "run"; `shows` is the output of a dry run.
void add_study_file_options(CLI::App& app, StudyFileOptions& options, const std::string& does,
                            const std::string& shows);

/// A study and its folder, which may not exist yet.
struct NamedStudy {
  StudySpec spec;
  std::string toml, folder;
};
/// Reads a study from its file, with the folder DIR/NAME and with `sets` overriding its [set], or
/// from the folder of a study that was started.
NamedStudy read_named_study(const StudyFileOptions& options);
/// Reads the study in a folder.
NamedStudy read_folder_study(const std::string& folder);
/// The stored trials of `spec` in `folder`, by number; empty if the folder contains no study.
/// Throws Error{bad_input} if it contains another study.
std::map<int, TrialRecord> stored_trials(const StudySpec& spec, const std::string& folder);

/// Throws Error{bad_input} under mpirun or srun; `command` is the `concertina study` subcommand.
void require_no_launcher(const std::string& command);
/// Blocks SIGTERM, SIGINT, SIGUSR1 and SIGCHLD until they are polled.
void hold_study_signals();
/// What to print if a study has stopped before its trials ended.
std::string stopped_text();
/// Waits until a trial has exited, but at most a tenth of a second.
void wait_for_trials();

}  // namespace concertina
