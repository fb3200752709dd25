#include "experiments/command_bench.h"

#include "experiments/bench_step.h"

namespace concertina {
namespace {

struct StepOptions : CommonOptions {
  BenchOptions bench;
};

/// The model that the project's figures are of; --set and files overlay it.
const std::vector<std::string> kBenchModel = {
    "model.layers=6",       "model.width=384",   "model.heads=6",
    "model.context=256",    "model.vocab=256",   "batch.global=16",
    "batch.microbatches=4", "numerics.leaves=1", "run.threads=1"};

void declare_step(CLI::App& app, StepOptions& options) {
  add_json_option(app, options);
  app.add_option("--steps", options.bench.steps, "measured steps")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.bench.warmup, "steps before them")
      ->check(CLI::NonNegativeNumber);
  options.defaults = kBenchModel;
}

int run_step(const StepOptions& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_step(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : bench_step_table(result));
  return 0;
}

}  // namespace

Runner add_bench(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* step = app.add_subcommand("step", "one training step, and where its time goes");
  return with_config<StepOptions>(*step, declare_step, run_step);
}

}  // namespace concertina
