// Shared by `run` and `soak`: the command `train ...` after --, and how its ranks are launched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/commands/command.h"
#include "experiments/launcher/launcher.h"
#include "experiments/supervise/supervisor.h"

namespace concertina {

struct SupervisedOptions : CommandOptions {
  std::optional<int> ranks;
  std::string launcher;            // empty: Open MPI's
  std::string hosts;               // "a:2,b:2"
  std::vector<std::string> words;  // train ...
};

void add_supervised_options(CLI::App& app, SupervisedOptions& options);

/// Returns the run to launch. Throws Error{bad_input} under mpirun or srun, if the words are
/// not a `train` command that can be resumed, or if the launcher is missing. `command`: "run".
SupervisedTraining supervised_training(const SupervisedOptions& options,
                                       const std::string& command);

/// Trains to the end, relaunching as needed, and logs the outcome unless `json`. Blocks the
/// process's stop signals from then on.
SuperviseSummary run_supervised(const SupervisedTraining& training, bool json);

}  // namespace concertina
