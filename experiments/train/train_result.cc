#include "experiments/train/train_result.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "core/version.h"
#include "experiments/launch/run_result.h"
#include "experiments/machine/error_text.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/record/utilization.h"
#include "io/file.h"
#include "io/metrics.h"

namespace concertina {
namespace {

bool is_of_step(const std::string& path, std::int64_t step) try {
  const auto result = nlohmann::json::parse(read_file(path, 16 << 20), nullptr, false);
  return result.is_object() && result.contains("steps") && result["steps"] == step;
} catch (const Error&) {
  return false;
}

}  // namespace

double model_flops_utilization(const Launch& launch, double seconds) {
  const double peak = peak_flops_per_s(launch.config, launch.backend->describe());
  if (peak <= 0) return 0;
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
  MeasuredCosts costs = measure_costs(launch.trainer, *launch.backend, launch.threads, &record);
  costs.machine.moves = moves;
  costs.machine.cache_read_s_per_byte = cache_read;
  if (!launch.monitor) return;
  try {
    write_result(launch.directory + "/costs.json", to_json(costs));
  } catch (const Error& error) {
    log::warn("no costs were written: {} ({})", error.message(), error.where());
  }
}

void save_result(const TrainLaunch& launch, const LaunchFigures& figures,
                 const LaunchSummary& summary, const std::string& hash,
                 const std::optional<RunTrace>& trace) {
  const std::string path = launch.directory + "/result.json";
  if (!summary.last && is_of_step(path, summary.step)) return;
  nlohmann::ordered_json result = to_json(figures, summary);
  const double share = summary.last
                           ? model_flops_utilization(
                                 launch, figures.seconds() / static_cast<double>(figures.steps()))
                           : 0;
  if (share > 0)
    result.update({{"mfu", share},
                   {"peak_tflops_per_rank",
                    peak_flops_per_s(launch.config, launch.backend->describe()) * 1e-12}});
  if (summary.last) result.update(predicted_figures(launch, launch.directory, trace));
  result.update(about_run(launch));
  if (!launch.isa.empty()) result["isa"] = launch.isa;
  result.update({{"version", program_version().number},
                 {"commit", program_version().commit},
                 {"time", utc_text()},
                 {"state_sha256", hash}});
  for (bool again = true;; again = false) try {
      return write_result(path, result);
    } catch (const Error& error) {
      if (!again)
        throw Error(Exit::failure, fmt::format("no result.json: {}", error.message()),
                    error.where(),
                    fmt::format("{}; then the same command writes it: nothing is left to train, "
                                "the checkpoint of step {} is whole",
                                error.fix().empty() ? "find out why" : error.fix(), summary.step),
                    error.system_error());
      log::warn("{}: {}: tried again", path, error.message());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

std::string closing_words(const TrainLaunch& launch, const LaunchFigures& figures,
                          const LaunchSummary& summary, const std::string& text) {
  const Validation& validation = summary.validation;
  std::string words = fmt::format("nothing was left to train at step {}\n", summary.step);
  if (summary.last)
    words = fmt::format("trained {}, loss {}, {} tokens/s\n", counted(summary.step, "step"),
                        number_text(summary.last->loss), format_rate(figures.tokens_per_s()));
  if (validation.targets > 0)
    words += fmt::format(
        "held-out loss {} nats per target{}, over {}; evaluations took {:.0f}% of this launch\n",
        number_text(validation.loss), metrics_text(validation), text_share(validation),
        100 * summary.eval_seconds / summary.launch_seconds);
  if (summary.cache) words += text_of(*summary.cache) + "\n";
  const std::string& prompt = launch.config.generate.prompt;
  if (!text.empty()) words += "\n" + terminal_text(prompt + text) + "\n";
  return words + fmt::format("\nrun directory: {}\n", launch.directory);
}

}  // namespace concertina
