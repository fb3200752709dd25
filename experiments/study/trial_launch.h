// The launch of a trial: its config, its overrides.toml and the words of its command, from a
// launcher's template.
// Invariant: all of it follows from the study and the trial's settings; what its run left before
// decides only whether it begins anew.
#pragma once

#include <string>
#include <vector>

#include "experiments/launcher/child_process.h"
#include "experiments/launcher/launcher.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_folder.h"
#include "io/toml_reader.h"

namespace concertina {

/// The [launch] of a study's file. Throws Error{bad_input} with the place of what is wrong.
LaunchSection read_launch(const TomlSource& source, const toml::node& node);
/// Sets the launcher that --launcher names; empty: none. Throws Error{bad_input} if the study has
/// one of its own, or the name is unknown.
void set_launcher(const std::string& name, StudySpec& spec);
/// Throws Error{bad_input} if the study's launcher is no program that there is, or has a
/// placeholder that nothing stands for.
void require_launcher(const StudySpec& spec);

/// The config of the task's launch, whose run is in the trial's folder. Throws Error{bad_input} if
/// its values do not go together.
RunConfig launch_config(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task);
/// A config without where its run is, as SHA-256: the same for the same training.
std::string launch_digest(RunConfig config);

/// Writes overrides.toml: what the launch has on top of the study's base files.
void write_overrides(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                     const RunConfig& config);

/// The process that starts the trial; `program`: what {program} stands for, `cpus`: as in
/// ChildOptions.
ChildOptions trial_child(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                         const RunConfig& config, const std::string& program,
                         std::vector<int> cpus);
/// The mark that all processes of the trial have in their environment (ChildOptions::mark).
std::string trial_mark(const StudyPaths& paths, int number);

/// The command of a trial, for people.
std::string launch_line(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                        const std::string& program);

}  // namespace concertina
