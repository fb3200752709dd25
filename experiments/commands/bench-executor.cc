// `concertina bench executor`: what the executor itself takes of a step.
#include "experiments/bench/bench_executor.h"
#include "experiments/bench/bench_step.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct ExecutorCommand : ConfigOptions {
  ExecutorBenchOptions bench;
};

void declare_executor(CLI::App& app, ExecutorCommand& options) {
  add_json_option(app, options);
  app.add_option("--steps", options.bench.steps, "measured steps, with tracing and without")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--bound", options.bench.bound, "percent of the step that make it fail")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  options.defaults = bench_model();
}

int run_executor(const ExecutorCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_executor(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : executor_table(result));
  return result["ok"].get<bool>() ? 0 : static_cast<int>(Exit::failure);
}

}  // namespace

Command command_bench_executor() {
  return make_command<ExecutorCommand>("what the executor itself takes of a step", declare_executor,
                                       run_executor);
}

}  // namespace concertina
