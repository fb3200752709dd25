// Options shared by the subcommands of `checkpoint`.
#pragma once

#include <string>

#include "experiments/commands/command.h"

namespace concertina {

struct CheckpointOptions : CommandOptions {
  std::string path;  // argument of stored_commit()
};
inline void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  app.add_option("path", options.path, "run, checkpoint or checkpoint directory")
      ->type_name("PATH")
      ->required();
  add_json_option(app, options);
}

}  // namespace concertina
