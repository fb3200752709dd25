// The launch of a trial: its config, overrides.toml and command line, from a launcher's template.
// Invariant: determined by the study and the trial's settings; files of an earlier launch only
// decide whether it restarts from scratch.
#pragma once

#include <string>
#include <vector>

#include "experiments/launcher/child_process.h"
#include "experiments/launcher/launcher.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_folder.h"
#include "io/toml_reader.h"

namespace concertina {

/// Reads the [launch] section of a study's file. Throws Error{bad_input} naming the location.
LaunchSection read_launch(const TomlSource& source, const toml::node& node);
/// Sets the launcher named by --launcher; empty: none. Throws Error{bad_input} if the study defines
/// one or the name is unknown.
void set_launcher(const std::string& name, StudySpec& spec);
/// Throws Error{bad_input} if the study's launcher does not exist or has an unknown placeholder.
void require_launcher(const StudySpec& spec);

/// The config of the task's launch, whose run is in the trial's folder. Throws Error{bad_input} if
/// its values are incompatible.
RunConfig launch_config(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task);
/// SHA-256 of a config without the run's location: equal for identical training runs.
std::string launch_digest(RunConfig config);

/// Writes overrides.toml, the keys of the launch on top of the study's base files.
void write_overrides(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                     const RunConfig& config);

/// The process that starts the trial. `program` replaces {program}; `cpus` is as in ChildOptions.
ChildOptions trial_child(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                         const RunConfig& config, const std::string& program,
                         std::vector<int> cpus);
/// The environment mark of all processes of the trial (ChildOptions::mark).
std::string trial_mark(const StudyPaths& paths, int number);

/// The command of a trial, for display.
std::string launch_line(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                        const std::string& program);

}  // namespace concertina
