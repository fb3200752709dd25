// `concertina bench change`: a change of the layout between two steps.
#include "experiments/bench/bench_change.h"
#include "experiments/bench/bench_step.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct ChangeCommand : ConfigOptions {
  ChangeBenchOptions bench;
};

void declare_change(CLI::App& app, ChangeCommand& options) {
  ChangeBenchOptions& bench = options.bench;
  add_json_option(app, options);
  app.add_option("--to", bench.to,
                 "the other layout: keys of [parallel] on top of the config, \"parallel.pp=1\"")
      ->type_name("KEYS");
  app.add_option("--rounds", bench.rounds, "measured changes there and back")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", bench.warmup, "steps before the first change")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--bytes", bench.bytes, "size of a message that probes the link")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  options.defaults = bench_model();
  std::erase(options.defaults, "numerics.leaves=1");  // replicas need more
}

int run_change(const ChangeCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_change(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : change_table(result));
  return 0;
}

}  // namespace

Command command_bench_change() {
  return make_command<ChangeCommand>(
      "a change of the layout between two steps, there and back, and its prediction",
      declare_change, run_change);
}

}  // namespace concertina
