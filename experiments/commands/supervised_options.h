// What `run` and `soak` share: the command `train ...` after --, and how its ranks are started.
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

/// The training as it will be launched. Throws Error{bad_input} under mpirun or srun, and unless
/// the words are those of a `train` that can be resumed, with a launcher that is there. `command`:
/// "run".
SupervisedTraining supervised_training(const SupervisedOptions& options,
                                       const std::string& command);

/// Trains to the end with launch after launch, and says what came of it, in words unless `json`.
/// The process' stop signals are held from then on.
SuperviseSummary run_supervised(const SupervisedTraining& training, bool json);

}  // namespace concertina
