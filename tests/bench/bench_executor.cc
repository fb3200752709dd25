// Measures the cost of interpreting a plan: the time of a step outside of units, loading, the
// update and waits.
// Invariant: all shares are of one step of one process; steps with and without tracing alternate.

#include <algorithm>
#include <array>

#include "core/step_history.h"
#include "experiments/bench/bench_step.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/machine/gather.h"
#include "tests/bench/benches.h"

namespace concertina {
namespace executor_bench {

/// Seconds of one step on one rank.
enum StepPart { kStep, kStage, kLoad, kUpdate, kWait, kOverhead, kParts };
using Parts = std::array<double, kParts>;

Parts parts_of(const TimedTrainer& bench) {
  const StepRecord& record = bench.record();
  Parts parts{};
  parts[kStep] = record.end - record.start;
  parts[kStage] = record.stage_seconds;
  double first = record.actions.front().start;
  for (const WaitTime& wait : record.waits) {
    parts[kWait] += wait.end - wait.start;
    first = std::min(first, wait.start);
  }
  parts[kLoad] = first - record.start;
  parts[kUpdate] = step_seconds(bench.row(), record);
  parts[kOverhead] = parts[kStep];
  for (const StepPart part : {kStage, kLoad, kUpdate, kWait}) parts[kOverhead] -= parts[part];
  return parts;
}

/// Returns the parts of the rank with the largest overhead.
Parts worst(Communicator& world, const Parts& mine) {
  const std::vector<double> all = gather_values(world, mine);
  Parts result{};
  for (std::size_t i = 0; i < all.size(); i += kParts)
    if (i == 0 || all[i + kOverhead] / all[i + kStep] > result[kOverhead] / result[kStep])
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i), kParts, result.begin());
  return result;
}

Json medians(const std::vector<Parts>& steps) {
  const auto middle = [&](auto value) {
    std::vector<double> values;
    for (const Parts& parts : steps) values.push_back(value(parts));
    return median(std::move(values));
  };
  const auto ms = [&](StepPart part) {
    return 1e3 * middle([&](const Parts& parts) { return parts[part]; });
  };
  return {{"step_ms", ms(kStep)},
          {"overhead", middle([](const Parts& parts) { return parts[kOverhead] / parts[kStep]; })},
          {"overhead_ms", ms(kOverhead)},
          {"stage_ms", ms(kStage)},
          {"update_ms", ms(kUpdate)},
          {"wait_ms", ms(kWait)}};
}

struct ExecutorOptions : ConfigOptions {
  int steps = 10;    // of each kind, after one that warms up
  double bound = 1;  // percent of a step
};

int run(const ExecutorOptions& options, MpiEnvironment& mpi) {
  const RunConfig& config = options.config;
  Communicator& world = mpi.world();
  TimedTrainer bench(config, world);
  bench.trainer.engine().executor().unit_clock().measure_every_step();
  std::array<std::vector<Parts>, 2> measured;  // without tracing, with it
  for (int round = -1; round < options.steps; ++round)
    for (const bool traced : {false, true}) {
      bench.trainer.engine().executor().recorder().keep(bench.steps + 1, traced ? 1 : 0);
      bench.step();
      const Parts parts = worst(world, parts_of(bench));
      if (round >= 0) measured[traced ? 1 : 0].push_back(parts);
    }
  Json result = {{"layout", short_form(bench.trainer.layout())},
                 {"schedule", config.parallel.schedule},
                 {"ranks", world.size()},
                 {"microbatches", bench.trainer.job().microbatches},
                 {"actions", bench.trainer.assignment().plan.rows[0].size()},
                 {"bound_percent", options.bound},
                 {"untraced", medians(measured[0])},
                 {"traced", medians(measured[1])}};
  const auto within = [&](const char* kind) {
    return 100 * result[kind]["overhead"].get<double>() <= options.bound;
  };
  result["ok"] = within("untraced") && within("traced");
  return print_result(result);
}

void declare(CLI::App& app, ExecutorOptions& options) {
  add_number(app, "--steps", options.steps, "measured steps, with tracing and without");
  add_number(app, "--bound", options.bound, "percent of the step that make it fail");
  options.defaults = bench_model();
}

}  // namespace executor_bench

Command bench_executor() {
  return make_command<executor_bench::ExecutorOptions>(
      "what the executor itself takes of a step", executor_bench::declare, executor_bench::run);
}

}  // namespace concertina
