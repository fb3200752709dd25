#include "experiments/commands/command_data.h"

namespace concertina {

Runner add_data(CLI::App& app) {
  auto chosen = std::make_shared<Runner>();
  app.require_subcommand(1);
  add_data_prepare(app, *chosen);
  add_data_inspect(app, *chosen);
  add_train_tokenizer(app, *chosen);
  return [chosen](MpiEnvironment& mpi) { return (*chosen)(mpi); };
}

}  // namespace concertina
