// `concertina checkpoint`: what a checkpoint holds, whether it is as it was written, and models
// from and for elsewhere.
#pragma once

#include <string>

#include "experiments/commands/command.h"

namespace concertina {

struct CheckpointOptions {
  std::string path;  // of stored_commit()
  bool json = false;
};

int run_checkpoint_inspect(const CheckpointOptions& options);
/// Exit code 1 if anything is not as it was written.
int run_checkpoint_verify(const CheckpointOptions& options);

Runner add_checkpoint(CLI::App& app);

}  // namespace concertina
