// Compares the simulator's prediction of a step's time with the measured time.
// Invariant: the costs come from steps of the first schedule only; steps of all schedules alternate
// in one launch, so that all run under the same conditions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/step_history.h"
#include "core/text/number_text.h"
#include "experiments/bench/timed_trainer.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/measured_costs.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/simulate.h"
#include "tests/bench/benches.h"

namespace concertina {
namespace prediction_bench {

constexpr double kSame = 0.01;  // schedules that differ by less are not ranked
constexpr double kTie = 0.001;  // predictions that differ by less predict no order

/// "NAME:CHUNKS".
RunConfig with_schedule(RunConfig config, const std::string& text) {
  const std::size_t colon = text.find(':');
  config.parallel.schedule = text.substr(0, colon);
  if (colon == std::string::npos) return config;
  config.parallel.chunks = parse_number<int>(std::string_view(text).substr(colon + 1)).value_or(0);
  if (config.parallel.chunks < 1)
    throw_input(fmt::format("'{}' is not a schedule", text), "--schedules",
                "NAME, or NAME:CHUNKS such as interleaved-1f1b:2");
  return config;
}

/// One schedule of the comparison.
struct Subject : TimedTrainer {
  using TimedTrainer::TimedTrainer;

  void measure() {
    seconds.push_back(step());
    busies.push_back(compute_seconds());
  }
  double compute_seconds() const {
    double busy = 0;
    for (std::size_t i = 0; i < row().size(); ++i)
      if (is_compute(row()[i].kind)) busy += record().actions[i].busy;
    return busy;
  }

  std::vector<double> seconds, busies;  // of this rank's measured steps
};

/// Returns the median over steps of the slowest rank's time, in seconds.
double measured_seconds(const Subject& subject, Communicator& world) {
  const std::vector<double> all = gather_values(world, subject.seconds);
  std::vector<double> slowest(subject.seconds.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    slowest[i % slowest.size()] = std::max(slowest[i % slowest.size()], all[i]);
  return median(std::move(slowest));
}

Json compare(const Subject& subject, const MeasuredCosts& costs, Communicator& world) {
  const Assignment& assignment = subject.trainer.assignment();
  const Timeline timeline =
      simulate(assignment.plan, assignment.layout,
               plan_costs(subject.trainer.job(), assignment, costs.units, costs.machine));
  const double measured = measured_seconds(subject, world);
  const double busy = median(subject.busies);
  Json predicted_compute = Json::array(), measured_compute = Json::array();
  for (const double compute : timeline.compute) predicted_compute.push_back(compute * 1e3);
  for (const double one : gather_values(world, std::span(&busy, 1)))
    measured_compute.push_back(one * 1e3);
  return {
      {"schedule", subject.config.parallel.schedule}, {"chunks", subject.config.parallel.chunks},
      {"predicted_ms", timeline.makespan * 1e3},      {"measured_ms", measured * 1e3},
      {"ratio", timeline.makespan / measured},        {"predicted_compute_ms", predicted_compute},
      {"measured_compute_ms", measured_compute}};
}

bool ranking_right(const Json& schedules) {
  for (const Json& a : schedules)
    for (const Json& b : schedules) {
      const double measured = a["measured_ms"].get<double>() / b["measured_ms"].get<double>();
      const double predicted = a["predicted_ms"].get<double>() / b["predicted_ms"].get<double>();
      if (measured < 1 - kSame && predicted > 1 + kTie) return false;
    }
  return true;
}

struct PredictionOptions : ConfigOptions {
  std::vector<std::string> schedules = {"1f1b", "gpipe", "interleaved-1f1b:2", "zb-h1"};
  int steps = 20;  // measured per schedule, after `warmup`
  int warmup = 3;
  double bound = 5;  // largest error of a prediction, percent
};

int run(const PredictionOptions& options, MpiEnvironment& mpi) {
  const RunConfig& config = options.config;
  Communicator& world = mpi.world();
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string& schedule : options.schedules)
    subjects.push_back(std::make_unique<Subject>(with_schedule(config, schedule), world));
  for (int round = 0; round < options.warmup + options.steps; ++round)
    for (const auto& subject : subjects)
      if (round < options.warmup)
        subject->step();
      else
        subject->measure();
  Subject& first = *subjects.front();
  const MeasuredCosts costs = measure_costs(first.trainer, *first.backend, first.threads);
  Json result = {{"layout", short_form(first.trainer.layout())},
                 {"ranks", world.size()},
                 {"microbatches", first.trainer.job().microbatches},
                 {"bound_percent", options.bound}};
  double worst = 0;
  for (const auto& subject : subjects) {
    result["schedules"].push_back(compare(*subject, costs, world));
    worst = std::max(worst, std::abs(result["schedules"].back()["ratio"].get<double>() - 1));
  }
  result["worst_percent"] = 100 * worst;
  result["ranking_right"] = ranking_right(result["schedules"]);
  result["ok"] = 100 * worst <= options.bound && result["ranking_right"].get<bool>();
  result["costs"] = to_json(costs);
  return print_result(result);
}

void declare(CLI::App& app, PredictionOptions& options) {
  app.add_option("--schedules", options.schedules,
                 "NAME or NAME:CHUNKS; costs are measured in the first one's steps")
      ->delimiter(',')
      ->capture_default_str();
  add_number(app, "--steps", options.steps, "measured steps of each");
  add_number(app, "--warmup", options.warmup, "steps before them", CLI::NonNegativeNumber);
  add_number(app, "--bound", options.bound, "percent off that make it fail");
  // Small enough to take a minute, large enough for units to take milliseconds.
  options.defaults = {"model.layers=4",       "model.width=256", "model.heads=4",
                      "model.context=256",    "model.vocab=256", "batch.global=16",
                      "batch.microbatches=8", "run.threads=1",   "parallel.dp=1"};
}

}  // namespace prediction_bench

Command bench_prediction() {
  return make_command<prediction_bench::PredictionOptions>(
      "predicted and measured step times of schedules", prediction_bench::declare,
      prediction_bench::run);
}

}  // namespace concertina
