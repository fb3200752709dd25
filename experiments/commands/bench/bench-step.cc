// `concertina bench step`: measures a training step and its parts.
#include "experiments/bench/bench_step.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct StepOptions : ConfigOptions {
  BenchOptions bench;
};

void declare_step(CLI::App& app, StepOptions& options) {
  add_json_option(app, options);
  add_default_option(app, "--steps", options.bench.steps, "number of measured steps")
      ->check(CLI::PositiveNumber);
  add_default_option(app, "--warmup", options.bench.warmup, "number of unmeasured warm-up steps")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--write-costs", options.bench.costs,
                 "file to write unit costs to, for the --costs option of plan and schedule")
      ->type_name("FILE");
  options.defaults = bench_model();
}

int run_step(const StepOptions& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_step(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : bench_step_table(result));
  return 0;
}

}  // namespace

Command command_bench_step() {
  return make_command<StepOptions>("measure a training step and its parts", declare_step, run_step);
}

}  // namespace concertina
