#include "experiments/commands/command_bench.h"

#include <fstream>

#include "core/error.h"
#include "experiments/bench/bench_change.h"
#include "experiments/bench/bench_exchange.h"
#include "experiments/bench/bench_executor.h"
#include "experiments/bench/bench_links.h"
#include "experiments/bench/bench_prediction.h"
#include "experiments/bench/bench_step.h"

namespace concertina {
namespace {

struct StepOptions : CommonOptions {
  BenchOptions bench;
};

struct PredictionCommand : CommonOptions {
  PredictionOptions bench{.schedules = {"1f1b", "gpipe", "interleaved-1f1b:2", "zb-h1"}};
};

struct LinksCommand {
  LinkBenchOptions bench;
  std::string machine;  // file to write
  bool json = false;
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
  app.add_option("--write-costs", options.bench.costs,
                 "costs of the units, for --costs of plan and schedule")
      ->type_name("FILE");
  options.defaults = kBenchModel;
}

int run_step(const StepOptions& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_step(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : bench_step_table(result));
  return 0;
}

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

struct ExecutorCommand : CommonOptions {
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
  options.defaults = kBenchModel;
}

int run_executor(const ExecutorCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_executor(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : executor_table(result));
  return result["ok"].get<bool>() ? 0 : static_cast<int>(Exit::failure);
}

int run_links(const LinksCommand& options, MpiEnvironment& mpi) {
  const MachineModel machine = bench_links(mpi.world(), options.bench);
  print_once(options.json ? to_json(machine).dump() + "\n" : machine_toml(machine));
  if (options.machine.empty() || mpi.world().rank() != 0) return 0;
  std::ofstream file(options.machine);
  file << machine_toml(machine);
  if (!file.flush())
    throw_failure("cannot write the machine file", options.machine, "--write FILE");
  return 0;
}

Runner add_links_bench(CLI::App& app) {
  auto options = std::make_shared<LinksCommand>();
  app.add_flag("--json", options->json, "print one JSON object, nothing else");
  app.add_option("--bytes", options->bench.bytes, "size of a large message")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--write", options->machine, "the machine file, for --costs")->type_name("FILE");
  return [options](MpiEnvironment& mpi) { return run_links(*options, mpi); };
}

struct ChangeCommand : CommonOptions {
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
  options.defaults = kBenchModel;
  std::erase(options.defaults, "numerics.leaves=1");  // replicas need more
}

int run_change(const ChangeCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_change(options.config, mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : change_table(result));
  return 0;
}

struct ExchangeCommand {
  ExchangeBenchOptions bench;
  bool json = false;
};

int run_exchange(const ExchangeCommand& options, MpiEnvironment& mpi) {
  const nlohmann::ordered_json result = bench_exchange(mpi.world(), options.bench);
  print_once(options.json ? result.dump() + "\n" : exchange_table(result));
  return result["ok"].get<bool>() ? 0 : static_cast<int>(Exit::failure);
}

Runner add_exchange(CLI::App& app) {
  auto options = std::make_shared<ExchangeCommand>();
  ExchangeBenchOptions& bench = options->bench;
  app.add_flag("--json", options->json, "print one JSON object, nothing else");
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
  return [options](MpiEnvironment& mpi) { return run_exchange(*options, mpi); };
}

}  // namespace

Runner add_bench(CLI::App& app) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Runner>();
  const auto sub = [&](const char* name, const char* help, const auto& add) {
    CLI::App* added = app.add_subcommand(name, help);
    added->callback([chosen = chosen.get(), runner = add(*added)] { *chosen = runner; });
  };
  sub("step", "one training step, and where its time goes",
      [](CLI::App& step) { return with_config<StepOptions>(step, declare_step, run_step); });
  sub("prediction", "predicted and measured step times of schedules", [](CLI::App& prediction) {
    return with_config<PredictionCommand>(prediction, declare_prediction, run_prediction);
  });
  sub("executor", "what the executor itself takes of a step", [](CLI::App& executor) {
    return with_config<ExecutorCommand>(executor, declare_executor, run_executor);
  });
  sub("change", "a change of the layout between two steps, there and back, and its prediction",
      [](CLI::App& change) {
        return with_config<ChangeCommand>(change, declare_change, run_change);
      });
  sub("exchange",
      "gradients and weights between replicas, measured, predicted and as a ring's bound",
      add_exchange);
  sub("links", "latency, bandwidth and CPU time between ranks", add_links_bench);
  return [chosen](MpiEnvironment& mpi) { return (*chosen)(mpi); };
}

}  // namespace concertina
