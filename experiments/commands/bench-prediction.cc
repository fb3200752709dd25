// `concertina bench prediction`: predicted and measured step times of schedules.
#include "experiments/bench/bench_prediction.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct PredictionCommand : ConfigOptions {
  PredictionOptions bench{.schedules = {"1f1b", "gpipe", "interleaved-1f1b:2", "zb-h1"}};
};

/// Small enough for a minute, large enough that units take milliseconds.
const std::vector<std::string> kPredictionModel = {
    "model.layers=4",       "model.width=256", "model.heads=4",
    "model.context=256",    "model.vocab=256", "batch.global=16",
    "batch.microbatches=8", "run.threads=1",   "parallel.dp=1"};

void declare_prediction(CLI::App& app, PredictionCommand& options) {
  add_json_option(app, options);
  app.add_option("--schedules", options.bench.schedules,
                 "NAME or NAME:CHUNKS; costs are measured in the first one's steps")
      ->type_name("NAME")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--steps", options.bench.steps, "measured steps of each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", options.bench.warmup, "steps before them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--bound", options.bench.bound, "percent off that make it fail")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  options.defaults = kPredictionModel;
}

int run_prediction(const PredictionCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result =
      bench_prediction(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : prediction_table(result));
  return result["ok"].get<bool>() ? 0 : static_cast<int>(Exit::failure);
}

}  // namespace

Command command_bench_prediction() {
  return make_command<PredictionCommand>("predicted and measured step times of schedules",
                                         declare_prediction, run_prediction);
}

}  // namespace concertina
