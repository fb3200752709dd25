// What commands share that launch or submit the trials of studies.
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

/// Adds --launcher: that with which Slurm starts trials.
void add_launcher_option(CLI::App& app, std::string& launcher);

/// Adds the study's folder, as the first argument.
void add_study_folder(CLI::App& app, std::string& directory);

/// Adds --dir: where the study's folder is made.
void add_studies_directory(CLI::App& app, std::string& directory);

/// The options of commands that make the study's folder from its file, or go on in it.
struct StudyFileOptions : CommandOptions {
  std::string file, directory = "studies";
  std::vector<std::string> sets;
  bool retry_failed = false, dry_run = false;
};
/// Adds the study's file, keys of all trials, --dir, --retry-failed, --dry-run and --json. `does`:
/// "run"; `shows`: what a dry run prints.
void add_study_file_options(CLI::App& app, StudyFileOptions& options, const std::string& does,
                            const std::string& shows);

/// A study and where it is, or will be.
struct NamedStudy {
  StudySpec spec;
  std::string toml, folder;
};
/// The study of a file, which has the folder DIR/NAME, with `sets` in place of its [set]; or of the
/// folder of a study that began.
NamedStudy read_named_study(const StudyFileOptions& options);
/// The study of a folder.
NamedStudy read_folder_study(const std::string& folder);
/// The states of the trials of a study in `folder`, by number; none if nothing is there yet. Throws
/// Error{bad_input} if another study is.
std::map<int, TrialState> states_of(const StudySpec& spec, const std::string& folder);

/// Throws Error{bad_input} under mpirun or srun; `command`: of `concertina study`.
void require_no_launcher(const std::string& command);
/// Makes SIGTERM, SIGINT, SIGUSR1 and SIGCHLD wait from now on until somebody asks.
void hold_study_signals();
/// Returns when a trial has ended, or a tenth of a second later.
void wait_for_trials();

}  // namespace concertina
