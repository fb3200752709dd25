// What subcommands of `study` that launch or submit trials share.
#pragma once

#include <string>

#include "experiments/run/machine.h"
#include "experiments/run/signals.h"
#include "experiments/study/study_spec.h"

namespace concertina {

/// A study from its file, whose name can be that of a folder. `toml`: gets the file's text.
StudySpec read_named_study(const std::string& file, std::string& toml);
/// "DIR/NAME".
std::string study_folder_of(const std::string& directory, const StudySpec& spec);
/// Throws Error{bad_input} under mpirun or srun; `command`: of `concertina study`.
void require_no_launcher(const std::string& command);
/// From now on SIGTERM, SIGINT, SIGUSR1 and SIGCHLD wait until somebody asks.
void hold_study_signals();
/// Returns when a trial has ended, or a tenth of a second later.
void wait_for_trials();
/// The path of this program.
std::string own_program();

}  // namespace concertina
