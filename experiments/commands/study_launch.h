// What subcommands of `study` that launch trials share.
#pragma once

#include <string>

#include "experiments/run/machine.h"
#include "experiments/run/signals.h"

namespace concertina {

/// From now on SIGTERM, SIGINT, SIGUSR1 and SIGCHLD wait until somebody asks.
void hold_study_signals();
/// Returns when a trial has ended, or a tenth of a second later.
void wait_for_trials();
/// The path of this program.
std::string own_program();

}  // namespace concertina
