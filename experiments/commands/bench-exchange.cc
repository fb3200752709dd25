// `concertina bench exchange`: gradients and weights between replicas.
#include "experiments/bench/bench_exchange.h"
#include "experiments/commands/command.h"

namespace concertina {
namespace {

struct ExchangeCommand : CommandOptions {
  ExchangeBenchOptions bench;
};

int run_exchange(const ExchangeCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_exchange(mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : exchange_table(result));
  return result["ok"].get<bool>() ? 0 : static_cast<int>(Exit::failure);
}

void declare_exchange(CLI::App& app, ExchangeCommand& options) {
  ExchangeBenchOptions& bench = options.bench;
  add_json_option(app, options);
  app.add_option("--bytes", bench.bytes, "gradients of a replica, in bytes")
      ->check(CLI::Range(64.0, 1e12))
      ->capture_default_str();
  app.add_option("--buckets", bench.buckets, "that they are exchanged in")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--rounds", bench.rounds, "measured rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", bench.warmup, "rounds before them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--bound", bench.bound,
                 "times the bound of a ring that make it fail; 0: nothing does")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--off", bench.off, "percent by which the prediction may be off")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--links", bench.links, "a machine file, in place of probing the links")
      ->type_name("FILE");
  app.add_option("--exchange", bench.exchange, "the scheme, as parallel.exchange names it")
      ->capture_default_str();
}

}  // namespace

Command command_bench_exchange() {
  return make_command<ExchangeCommand>(
      "gradients and weights between replicas, measured, predicted and as a ring's bound",
      declare_exchange, run_exchange);
}

}  // namespace concertina
