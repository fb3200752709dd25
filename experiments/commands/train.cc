// `concertina train`.
#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/config/config_toml.h"
#include "experiments/train/train_launch.h"
#include "experiments/train/train_preview.h"
#include "experiments/train/training.h"

namespace concertina {
namespace {

struct TrainOptions : ConfigOptions {
  TrainMode mode;
};

int train(const RunConfig& config, TrainMode mode, MpiEnvironment& mpi) {
  TrainLaunch launch(config, mode, mpi);
  launch.open();
  if (mode.dry_run) {
    if (launch.leads()) print_once(train_preview(launch));
    launch.world.barrier();
    return 0;
  }
  std::optional<Training> training(std::in_place, launch);
  std::optional<int> code;
  try {
    while (!(code = training->run())) {
      training.reset();
      launch.go_back();
      training.emplace(launch);
    }
  } catch (const Error& error) {
    launch.ended(training ? training->done() : launch.done, static_cast<int>(error.code()));
    throw;
  }
  launch.ended(training->done(), *code);
  return *code;
}

int run_train(const TrainOptions& options, MpiEnvironment& mpi) {
  if (const std::string key = files_key(options.config); data_files(options.config).empty())
    throw_input(fmt::format("no {} to train on", key == "data.text" ? "text" : "data"),
                options.config.where(key), fmt::format("--set {}=FILE", key));
  write_config(with_absolute_paths(options.config));  // throws for invalid UTF-8
  TrainMode mode = options.mode;
  for (RunConfig config = options.config;;) try {
      return train(config, mode, mpi);
    } catch (const LostRanks&) {
      go_on_in_place(config, mpi);
      mode.from_scratch = false;
    }
}

void add_train_options(CLI::App& app, TrainOptions& options) {
  app.add_flag("--from-scratch", options.mode.from_scratch,
               "start at step 0 if the run has logs but no checkpoint; renames these logs");
  app.add_flag("--dry-run", options.mode.dry_run,
               "prepare everything up to the first step, describe the run and write nothing");
}

}  // namespace

Command command_train() {
  return make_command<TrainOptions>("train a model, or resume a run", add_train_options, run_train);
}

}  // namespace concertina
