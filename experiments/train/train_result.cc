#include "experiments/train/train_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "core/version.h"
#include "experiments/launch/launch.h"
#include "experiments/machine/exit.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/record/launch_metrics.h"
#include "experiments/record/report_metrics.h"
#include "experiments/record/run_costs.h"
#include "io/log_lines.h"
#include "io/metrics.h"
#include "io/run_files.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

// The parts of result.json other than step metrics (experiments/record/launch_metrics.h).
// Invariant: runs only on rank 0, after the last step and costs.json.
using Json = nlohmann::ordered_json;

/// The number of batches per recorded step.
int batches_of(const RunTrace& trace, const Job& job) {
  int microbatches = 0;
  for (const Pipeline& pipeline : trace.layout.pipelines)
    microbatches = std::max(microbatches, pipeline.last_microbatch);
  return std::max(1, microbatches / job.microbatches);
}

Json recorded_json(const RunTrace& trace, const ReportMetrics& metrics, int batches) {
  return {{"first_step", trace.steps.front().front().step},
          {"steps", batches * std::ssize(trace.steps)},
          {"median_step_ms", metrics.seconds * 1e3 / batches},
          {"bubble", metrics.bubble()},
          {"bubble_causes", to_json(metrics.causes())}};
}

/// Keys: predicted_step_ms and predicted_bubble, as in the report for the typical recorded step, or
/// from costs.json alone if there is no trace. With a trace, also `recorded`: first_step, steps,
/// median_step_ms (from the first rank's start to the last one's end), bubble and bubble_causes
/// (shares of the step that add up to it) as means over ranks.
Json predicted_metrics(const Launch& launch, const std::string& directory,
                       const std::optional<RunTrace>& trace) {
  const Assignment& assignment = launch.trainer.assignment();
  // A trace numbers only the working ranks.
  const KnownCosts known = known_costs(directory, trace ? trace->layout : assignment.layout,
                                       trace ? trace->plan : assignment.plan);
  Json json;
  if (trace) {  // as in `report`: recorded times include the cost of shared cores
    const ReportMetrics metrics = compute_metrics(*trace, known);
    const int batches = batches_of(*trace, launch.trainer.job());
    json["predicted_step_ms"] = metrics.predicted_seconds * 1e3 / batches;
    json["predicted_bubble"] = metrics.predicted_bubble();
    json["recorded"] = recorded_json(*trace, metrics, batches);
  } else if (known.costs) {
    const Timeline timeline = simulate(assignment.plan, assignment.layout, *known.costs);
    json["predicted_step_ms"] = timeline.makespan * 1e3 / assignment.batches;
    json["predicted_bubble"] = timeline.mean_bubble;
  }
  return json;
}

/// Keys: parameters, layout, ranks, schedule, microbatches, batch (samples of the last update),
/// device, compute, seed.
Json about_run(const Launch& launch) {
  const RunConfig& config = launch.config;
  return {{"parameters", parameter_count(launch.trainer.assignment().buckets)},
          {"layout", short_form(launch.trainer.layout())},
          {"ranks", launch.world.size()},
          {"schedule", config.parallel.schedule},
          {"microbatches", launch.trainer.job().microbatches},
          {"batch", launch.trainer.job().batch() * launch.trainer.assignment().batches},
          {"device", config.run.device},
          {"compute", config.numerics.compute},
          {"seed", config.run.seed}};
}

/// Keys: ended_by (the key of [run] that ended the run), epochs if that is set; for the best model,
/// best_by, best_step, best_figure.
Json ending_json(const TrainLaunch& launch, std::int64_t step) {
  const RunSection& run = launch.config.run;
  const Selection& selection = launch.selection;
  Json json = {{"ended_by", step < run.steps ? "run.patience"
                            : run.epochs > 0 ? "run.epochs"
                                             : "run.steps"}};
  if (run.epochs > 0) json["epochs"] = run.epochs;
  if (const auto& best = selection.best())
    json.update({{"best_by", best->by}, {"best_step", best->step}, {"best_figure", best->value}});
  return json;
}

bool is_of_step(const std::string& path, std::int64_t step) {
  const nlohmann::json result = read_log_json(path);
  return result.is_object() && result.contains("steps") && result["steps"] == step;
}

}  // namespace

MetricValue model_flops_utilization(const Launch& launch, double seconds) {
  const double peak = peak_flops_per_s(launch.config, launch.backend->describe());
  if (peak <= 0) return kNoValue;
  const Job& job = launch.trainer.job();
  return model_flops(job.model, job.microbatches) / (seconds * peak * launch.world.size());
}

void log_passes(const Backend& backend) {
  const PassCounts passes = backend.pass_counts();
  if (passes.issued + passes.replayed > 0)
    log::info("{} of {} unit passes were launched as CUDA graphs ({} graphs)", passes.replayed,
              passes.issued + passes.replayed, passes.recordings);
}

void save_costs(TrainLaunch& launch, CostRecord& record, const MoveRates& moves,
                double cache_read) {
  const Watchdog::Patience patience(&launch.watchdog, "measuring links");
  MeasuredCosts costs = measure_costs(launch.trainer, *launch.backend, launch.threads, &record,
                                      launch.cores_shared());
  costs.machine.moves = moves;
  costs.machine.cache_read_s_per_byte = cache_read;
  if (!launch.monitor) return;
  try {
    write_result(run_file(launch.directory, kCostsFile), to_json(costs));
  } catch (const Error& error) {
    log::warn("cannot write costs: {} ({})", error.message(), error.where());
  }
}

void save_result(const TrainLaunch& launch, const LaunchMetrics& metrics,
                 const LaunchSummary& summary, const std::string& hash,
                 const std::optional<RunTrace>& trace) {
  const std::string path = run_file(launch.directory, kResultFile);
  if (!summary.last && is_of_step(path, summary.step)) return;
  nlohmann::ordered_json result = to_json(metrics, summary);
  const MetricValue share =
      summary.last ? model_flops_utilization(
                         launch, metrics.seconds() / static_cast<double>(metrics.steps()))
                   : kNoValue;
  if (share > 0)
    result.update({{"mfu", share},
                   {"peak_tflops_per_rank",
                    peak_flops_per_s(launch.config, launch.backend->describe()) * 1e-12}});
  if (summary.last) result.update(predicted_metrics(launch, launch.directory, trace));
  result.update(about_run(launch));
  const Json confusion = confusion_json(summary.validation, launch.dataset->classes());
  for (const auto& [key, value] : confusion.items()) result["validation_" + key] = value;
  result.update(ending_json(launch, summary.step));
  if (!launch.isa.empty()) result["isa"] = launch.isa;
  result.update({{"version", program_version().number},
                 {"commit", program_version().commit},
                 {"time", utc_text()},
                 {"state_sha256", hash}});
  for (bool again = true;; again = false) try {
      return write_result(path, result);
    } catch (const Error& error) {
      if (!again)
        throw Error(Exit::failure, fmt::format("cannot write result.json: {}", error.message()),
                    error.where(),
                    fmt::format("{}, then rerun the same command to write it: nothing is left to "
                                "train, and the checkpoint of step {} is complete",
                                error.fix().empty() ? "find out why" : error.fix(), summary.step),
                    error.system_error());
      log::warn("{}: {}: retrying", path, error.message());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

std::string closing_words(const TrainLaunch& launch, const LaunchMetrics& metrics,
                          const LaunchSummary& summary, const std::string& text) {
  const Validation& validation = summary.validation;
  std::string words = fmt::format("nothing was left to train at step {}\n", summary.step);
  if (summary.last)
    words = fmt::format("trained {}, loss {}, {} tokens/s\n", counted(summary.step, "step"),
                        number_text(summary.last->loss), format_rate(metrics.tokens_per_s()));
  if (validation.targets > 0)
    words +=
        fmt::format("held-out loss {} {}{}, over {}{}; evaluations took {:.0f}% of this launch\n",
                    number_text(validation.loss), loss_unit(launch.config),
                    metrics_text(validation), text_share(validation),
                    validation.targets < validation.of && launch.config.eval.batches < 0
                        ? fmt::format(" (for all, run `concertina eval {}`)", launch.directory)
                        : "",
                    100 * summary.eval_seconds / summary.launch_seconds);
  if (summary.step < launch.config.run.steps)
    words += fmt::format("ended after {} (run.patience)\n", ending(launch.selection));
  if (const auto& best = launch.selection.best())
    words += fmt::format("best {}: {} after step {}{}\n", best->by, number_text(best->value),
                         best->step, launch.selection.keeps() ? ", whose checkpoint is kept" : "");
  if (summary.cache) words += text_of(*summary.cache) + "\n";
  const std::string& prompt = launch.config.generate.prompt;
  if (!text.empty()) words += "\n" + terminal_text(prompt + text) + "\n";
  return words + fmt::format("\nrun directory: {}\n", launch.directory);
}

}  // namespace concertina
