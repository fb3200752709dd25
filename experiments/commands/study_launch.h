// What subcommands of `study` that launch or submit trials share.
#pragma once

#include <string>
#include <vector>

#include "experiments/commands/command.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/signals.h"
#include "experiments/study/study_spec.h"

namespace concertina {

/// A study and where it is, or will be.
struct NamedStudy {
  StudySpec spec;
  std::string toml, folder;
};
/// `path`: a study's file, which has the folder DIR/NAME; or the folder of a study that began.
/// `sets`: KEY=VALUE, of all trials, as if they stood in [set] of the file.
NamedStudy read_named_study(const std::string& path, const std::string& directory,
                            const std::vector<std::string>& sets);
/// The positional arguments after the study, or --set.
void add_set_options(CLI::App& app, std::vector<std::string>& sets);
/// Throws Error{bad_input} under mpirun or srun; `command`: of `concertina study`.
void require_no_launcher(const std::string& command);
/// Makes SIGTERM, SIGINT, SIGUSR1 and SIGCHLD wait from now on until somebody asks.
void hold_study_signals();
/// Returns when a trial has ended, or a tenth of a second later.
void wait_for_trials();
/// The path of this program.
std::string own_program();

}  // namespace concertina
