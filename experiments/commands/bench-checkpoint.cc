// `concertina bench checkpoint`: saves, loads and snapshots.
#include "experiments/bench/bench_checkpoint.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct CheckpointCommand : CommandOptions {
  CheckpointBenchOptions bench;
};

void declare_checkpoint(CLI::App& app, CheckpointCommand& options) {
  CheckpointBenchOptions& bench = options.bench;
  add_json_option(app, options);
  app.add_option("--dir", bench.directory, "where files are made, and removed at the end")
      ->capture_default_str();
  app.add_option("--bytes", bench.bytes, "weights and optimizer state")
      ->check(CLI::Range(1e4, 1e12))
      ->capture_default_str();
  app.add_option("--tensors", bench.tensors, "that they are in")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--rounds", bench.rounds, "measured rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

int run_checkpoint(const CheckpointCommand& options, MpiEnvironment& mpi) {
  if (mpi.world().rank() > 0) return 0;
  const nlohmann::ordered_json result = bench_checkpoint(options.bench);
  print_once(options.json ? result.dump() + "\n" : checkpoint_table(result));
  return 0;
}

}  // namespace

Command command_bench_checkpoint() {
  return make_command<CheckpointCommand>(
      "saves, loads and snapshots of a state beside the disk and the memory alone",
      declare_checkpoint, run_checkpoint);
}

}  // namespace concertina
