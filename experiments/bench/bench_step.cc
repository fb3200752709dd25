#include "experiments/bench/bench_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/step_history.h"
#include "experiments/bench/products_alone.h"
#include "experiments/bench/schedule_bound.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "io/metrics.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds of one rank, by kind of action, in its last step.
std::map<std::string, double> phases_of(const TimedTrainer& bench) {
  std::map<std::string, double> phases;
  for (std::size_t i = 0; i < bench.row().size(); ++i) {
    const Kind kind = bench.row()[i].kind;
    if (kind == Kind::STEP) continue;
    const char* name = kind == Kind::F ? "forward" : is_compute(kind) ? "backward" : "transfers";
    phases[name] += bench.record().actions[i].busy;
  }
  phases["update"] = step_seconds(bench.row(), bench.record());
  return phases;
}

/// From the last step's times. Collective.
double schedule_bound(const TimedTrainer& bench, Communicator& world) {
  StageMeans mine(bench.trainer.layout()), all(bench.trainer.layout());
  mine.add(bench.row(), bench.record());
  all.add(gather_values(world, mine.values()));
  const double step = step_seconds(bench.row(), bench.record());
  return schedule_bound(bench.trainer.assignment().plan, bench.trainer.layout(), all,
                        gather_values(world, std::span(&step, 1)));
}

double largest(Communicator& world, double mine) {
  const std::vector<double> all = gather_values(world, std::span(&mine, 1));
  return *std::max_element(all.begin(), all.end());
}

Json breakdown(const Profile& profile, double steps) {
  Json kernels = Json::object();
  for (const auto& [name, kernel] : profile.kernels) {
    if (kernel.calls == 0) continue;
    Json one = {{"ms", kernel.seconds / steps * 1e3},
                {"calls", static_cast<double>(kernel.calls) / steps}};
    if (kernel.flops > 0) one["gflops_per_s"] = kernel.flops / kernel.seconds * 1e-9;
    kernels[std::string(name)] = one;
  }
  return kernels;
}

/// Seconds of each measured round, in which everything that is compared takes its turn.
struct Rounds {
  std::vector<double> step, products, tiles, bound, single;
  std::vector<double> issued;  // without graphs, where there are some
  double flops = 0;            // of this rank's products, a step

  static double ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
    return ratios.empty() ? 0 : median(ratios);
  }
};

/// Rank 0 doing the whole batch by itself; null on other ranks and in a world of one.
std::unique_ptr<TimedTrainer> single_rank(const RunConfig& config, Communicator& world,
                                          std::unique_ptr<Communicator>& self) {
  if (world.size() == 1) return nullptr;
  self = world.split(world.rank() == 0 ? 0 : -1, 0);
  if (self == nullptr) return nullptr;
  RunConfig alone = config;
  alone.parallel = {};
  return std::make_unique<TimedTrainer>(alone, *self);
}

Rounds measure(TimedTrainer& bench, TimedTrainer* single, Communicator& world,
               const BenchOptions& options) {
  Rounds rounds;
  for (int i = 0; i < options.warmup; ++i) {
    if (single != nullptr) single->step();
    bench.profile.reset();
    bench.profiled_step();
    if (!bench.times_in_passing()) bench.step();  // as it will be: it may record
  }
  ProductsAlone products(bench.profile, make_backend(bench.config, bench.threads, world), 1,
                         bench.config.run.device == "cuda" ? 0 : bench.threads);
  products.measure();
  bench.profile.reset();
  for (int i = 0; i < options.steps; ++i) {
    if (single != nullptr) rounds.single.push_back(single->step());
    world.barrier();
    const ProductsAlone::Seconds alone = products.measure();
    rounds.products.push_back(largest(world, alone.best));
    rounds.tiles.push_back(largest(world, alone.tiles));
    if (!bench.times_in_passing()) {
      bench.profiled_step();
      if (bench.config.run.graphs) rounds.issued.push_back(largest(world, bench.issued_step()));
    }
    rounds.step.push_back(largest(world, bench.step()));
    rounds.bound.push_back(schedule_bound(bench, world));
  }
  rounds.flops = products.flops();
  return rounds;
}

}  // namespace

Json bench_step(const RunConfig& config, Communicator& world, const BenchOptions& options) {
  TimedTrainer bench(config, world);
  std::unique_ptr<Communicator> self;
  const std::unique_ptr<TimedTrainer> single = single_rank(config, world, self);
  const Rounds rounds = measure(bench, single.get(), world, options);
  if (!options.costs.empty()) {
    const MeasuredCosts costs = measure_costs(bench.trainer, *bench.backend, bench.threads);
    if (world.rank() == 0) write_result(options.costs, to_json(costs));
  }
  const auto tokens = static_cast<double>(tokens_of_step(config));
  const double step = median(rounds.step);
  Json result = {{"layout", short_form(bench.trainer.layout())},
                 {"schedule", config.parallel.schedule},
                 {"ranks", world.size()},
                 {"threads", bench.threads},
                 {"microbatches", config.batch.microbatches},
                 {"leaves", bench.trainer.job().leaves},
                 {"backend", bench.backend->describe()},
                 {"step_ms", step * 1e3},
                 {"tokens_per_s", tokens / step},
                 {"gemm_flops", rounds.flops},
                 {"gemm_ms", median(rounds.products) * 1e3},
                 {"gemm_limit", Rounds::ratio(rounds.products, rounds.step)},
                 {"tiles_ms", median(rounds.tiles) * 1e3},
                 {"tiles_limit", Rounds::ratio(rounds.tiles, rounds.step)},
                 {"peak_bytes", largest(world, static_cast<double>(bench.trainer.peak_bytes()))}};
  if (!rounds.issued.empty()) {
    result["issued_ms"] = median(rounds.issued) * 1e3;
    result["graph_speedup"] = Rounds::ratio(rounds.issued, rounds.step);
  }
  if (world.size() > 1) {
    const double single_step = largest(world, rounds.single.empty() ? 0 : median(rounds.single));
    const double speedup = largest(world, Rounds::ratio(rounds.single, rounds.step));
    result["single_tokens_per_s"] = tokens / single_step;
    result["scaling"] = speedup / world.size();
    result["bound_ms"] = median(rounds.bound) * 1e3;
    result["schedule_efficiency"] = Rounds::ratio(rounds.bound, rounds.step);
  }
  for (const auto& [name, seconds] : phases_of(bench))
    result["phases"][name + "_ms"] = seconds * 1e3;
  result["kernels"] = breakdown(bench.profile, options.steps);
  return result;
}

std::vector<std::string> bench_model() {
  return {"model.layers=6",       "model.width=384",   "model.heads=6",
          "model.context=256",    "model.vocab=256",   "batch.global=16",
          "batch.microbatches=4", "numerics.leaves=1", "run.threads=1"};
}

std::string bench_step_table(const Json& result) {
  std::string text;
  for (const auto& [key, value] : result.items()) {
    if (value.is_object()) continue;
    text += value.is_number_float() ? fmt::format("{:<22} {:.6g}\n", key, value.get<double>())
                                    : fmt::format("{:<22} {}\n", key, value.dump());
  }
  text +=
      fmt::format("\n{:<30} {:>10} {:>8} {:>9}\n", "rank 0, per step", "ms", "calls", "GFLOP/s");
  for (const auto& [name, kernel] : result["kernels"].items())
    text += fmt::format("{:<30} {:>10.2f} {:>8.0f} {:>9}\n", name, kernel["ms"].get<double>(),
                        kernel["calls"].get<double>(),
                        kernel.contains("gflops_per_s")
                            ? fmt::format("{:.1f}", kernel["gflops_per_s"].get<double>())
                            : "");
  return text;
}

}  // namespace concertina
