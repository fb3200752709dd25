#include "experiments/bench/bench_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/profile_backend.h"
#include "core/step_history.h"
#include "experiments/bench/products_alone.h"
#include "experiments/bench/random_tokens.h"
#include "experiments/costs/measured_costs.h"
#include "experiments/run/gather.h"
#include "experiments/run/rank_engine.h"
#include "io/metrics.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// An engine with the clock on its kernels.
struct Subject {
  Subject(const RunConfig& config, int world, int rank)
      : threads(std::max(1, config.run.threads)),
        run(make_run_plan(config, world)),
        backend(make_cpu_backend(threads)),
        profiled(make_profile_backend(*backend, profile)),
        engine(run, config, rank, *profiled),
        tokens(config.model.context, config.model.vocab) {}

  void start(Communicator& world) {
    engine.start(world);
    engine.initialize();
  }
  double step() {
    engine.world().barrier();
    const double start = now();
    engine.train(++steps, tokens);
    engine.world().barrier();
    return now() - start;
  }

  int threads;
  RunPlan run;
  std::unique_ptr<Backend> backend;
  Profile profile;
  std::unique_ptr<Backend> profiled;
  RankEngine engine;
  RandomTokens tokens;
  std::int64_t steps = 0;
};

/// Seconds of one rank, by kind of action, in its last step.
std::map<std::string, double> phases_of(const Executor& executor) {
  std::map<std::string, double> phases;
  for (std::size_t i = 0; i < executor.row().size(); ++i) {
    const Kind kind = executor.row()[i].kind;
    const char* name = kind == Kind::F      ? "forward"
                       : kind == Kind::STEP ? "update"
                       : is_compute(kind)   ? "backward"
                                            : "transfers";
    phases[name] += executor.times()[i].busy;
  }
  return phases;
}

/// The schedule's makespan from the last step's measured times: mean F and B of each stage, mean
/// STEP of the ranks, transfers free. Collective.
double schedule_bound(const RunPlan& run, const Executor& executor, Communicator& world) {
  const auto stages = static_cast<std::size_t>(run.layout.stage_count());
  std::vector<double> sums(4 * stages + 1);  // a stage: F seconds, F count, B seconds, B count
  for (std::size_t i = 0; i < executor.row().size(); ++i) {
    const Action& action = executor.row()[i];
    const double seconds = executor.times()[i].busy;
    const std::size_t at = 4 * static_cast<std::size_t>(action.stage);
    if (action.kind == Kind::STEP) sums.back() += seconds / world.size();
    if (action.kind != Kind::F && action.kind != Kind::B) continue;
    const std::size_t pass = action.kind == Kind::F ? at : at + 2;
    sums[pass] += seconds;
    sums[pass + 1] += 1;
  }
  const std::vector<double> all = gather_values(world, sums);
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
  Costs costs = unit_costs(run.layout);
  for (std::size_t s = 0; s < stages; ++s) {
    costs.stages[s].forward = sums[4 * s] / std::max(1.0, sums[4 * s + 1]);
    costs.stages[s].input = sums[4 * s + 2] / std::max(1.0, sums[4 * s + 3]);
    costs.stages[s].weight = 0;
  }
  costs.ranks.assign(static_cast<std::size_t>(run.world), {.update = sums.back()});
  return simulate(run.plan, run.layout, costs).makespan;
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
  std::vector<double> step, products, bound, single;
  double flops = 0;  // of this rank's products, a step

  static double ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
    return ratios.empty() ? 0 : median(ratios);
  }
};

/// Rank 0 doing the whole batch by itself; null on other ranks and in a world of one.
std::unique_ptr<Subject> single_subject(const RunConfig& config, Communicator& world,
                                        std::unique_ptr<Communicator>& self) {
  if (world.size() == 1) return nullptr;
  self = world.split(world.rank() == 0 ? 0 : -1, 0);
  if (self == nullptr) return nullptr;
  RunConfig alone = config;
  alone.parallel = {};
  auto single = std::make_unique<Subject>(alone, 1, 0);
  single->start(*self);
  return single;
}

Rounds measure(Subject& subject, Subject* single, Communicator& world,
               const BenchOptions& options) {
  Rounds rounds;
  for (int i = 0; i < options.warmup; ++i) {
    if (single != nullptr) single->step();
    subject.profile.reset();
    subject.step();
  }
  ProductsAlone products(subject.profile, subject.threads, 1);
  products.measure();
  subject.profile.reset();
  for (int i = 0; i < options.steps; ++i) {
    if (single != nullptr) rounds.single.push_back(single->step());
    world.barrier();
    rounds.products.push_back(largest(world, products.measure()));
    rounds.step.push_back(largest(world, subject.step()));
    rounds.bound.push_back(schedule_bound(subject.run, subject.engine.executor(), world));
  }
  rounds.flops = products.flops();
  return rounds;
}

}  // namespace

Json bench_step(const RunConfig& config, Communicator& world, const BenchOptions& options) {
  Subject subject(config, world.size(), world.rank());
  subject.start(world);
  std::unique_ptr<Communicator> self;
  const std::unique_ptr<Subject> single = single_subject(config, world, self);
  const Rounds rounds = measure(subject, single.get(), world, options);
  if (!options.costs.empty()) {
    const MeasuredCosts costs =
        measure_costs(subject.engine, config, *subject.backend, subject.threads);
    if (world.rank() == 0) write_result(options.costs, to_json(costs));
  }
  const double tokens = static_cast<double>(config.batch.global) * config.model.context;
  const double step = median(rounds.step);
  Json result = {
      {"layout", short_form(subject.run.layout)},
      {"schedule", config.parallel.schedule},
      {"ranks", world.size()},
      {"threads", subject.threads},
      {"microbatches", config.batch.microbatches},
      {"leaves", subject.run.leaves},
      {"backend", subject.backend->describe()},
      {"step_ms", step * 1e3},
      {"tokens_per_s", tokens / step},
      {"gemm_flops", rounds.flops},
      {"gemm_ms", median(rounds.products) * 1e3},
      {"gemm_limit", Rounds::ratio(rounds.products, rounds.step)},
      {"peak_bytes", largest(world, static_cast<double>(subject.engine.arena().peak()))}};
  if (world.size() > 1) {
    const double single_step = largest(world, rounds.single.empty() ? 0 : median(rounds.single));
    const double speedup = largest(world, Rounds::ratio(rounds.single, rounds.step));
    result["single_tokens_per_s"] = tokens / single_step;
    result["scaling"] = speedup / world.size();
    result["bound_ms"] = median(rounds.bound) * 1e3;
    result["schedule_efficiency"] = Rounds::ratio(rounds.bound, rounds.step);
  }
  for (const auto& [name, seconds] : phases_of(subject.engine.executor()))
    result["phases"][name + "_ms"] = seconds * 1e3;
  result["kernels"] = breakdown(subject.profile, options.steps);
  return result;
}

std::string bench_step_table(const Json& result) {
  std::string text;
  for (const auto& [key, value] : result.items()) {
    if (value.is_object()) continue;
    text += value.is_number_float() ? fmt::format("{:<22} {:.6g}\n", key, value.get<double>())
                                    : fmt::format("{:<22} {}\n", key, value.dump());
  }
  text += fmt::format("\n{:<30} {:>10} {:>8} {:>9}\n", "rank 0, a step", "ms", "calls", "GFLOP/s");
  for (const auto& [name, kernel] : result["kernels"].items())
    text += fmt::format("{:<30} {:>10.2f} {:>8.0f} {:>9}\n", name, kernel["ms"].get<double>(),
                        kernel["calls"].get<double>(),
                        kernel.contains("gflops_per_s")
                            ? fmt::format("{:.1f}", kernel["gflops_per_s"].get<double>())
                            : "");
  return text;
}

}  // namespace concertina
