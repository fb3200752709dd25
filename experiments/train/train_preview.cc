#include "experiments/train/train_preview.h"

#include <fmt/format.h>

#include "core/text/number_text.h"
#include "experiments/config/config_environment.h"
#include "experiments/predict/plan_report.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/record/run_costs.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "io/datasets/split_files.h"
#include "io/file.h"
#include "io/run_files.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

std::string line(std::string_view name, const std::string& text) {
  return fmt::format("{:<14}{}\n", name, text);
}

std::int64_t steps_left(const TrainLaunch& launch) {
  return launch.trains() ? launch.config.run.steps - launch.done : 0;
}

std::string run_text(const TrainLaunch& launch) {
  const bool there = exists_at(run_file(launch.directory, kConfigFile));
  return launch.directory + (there ? " (exists)" : " (new)");
}

std::string patience_text(const RunConfig& config) {
  if (config.run.patience == 0) return "";
  return fmt::format(", or until {} without a better {}",
                     counted(config.run.patience, "evaluation"),
                     config.checkpoint.best.empty() ? "validation_loss" : config.checkpoint.best);
}

std::string steps_text(const TrainLaunch& launch) {
  const std::int64_t last = launch.config.run.steps, epochs = launch.config.run.epochs;
  const std::string from = launch.done > 0
                               ? fmt::format(", resuming after the checkpoint of step {} in {}",
                                             launch.done, launch.checkpoints)
                               : ", from new weights";
  if (steps_left(launch) == 0) return fmt::format("nothing is left to train{}", from);
  return fmt::format("{} to {}{}{}", launch.done + 1, last,
                     (epochs > 0 ? fmt::format(", the end of epoch {}", epochs) : "") +
                         patience_text(launch.config),
                     from);
}

std::string tokens_text(const TrainLaunch& launch) {
  const RunConfig& config = launch.config;
  const std::int64_t step = tokens_of_step(config);
  return fmt::format("{} per step, {} in {}; the data has {} bytes", grouped(step),
                     grouped(step * steps_left(launch)), counted(steps_left(launch), "step"),
                     grouped(static_cast<std::int64_t>(launch.dataset->corpus().size())));
}

std::string lr_text(const TrainLaunch& launch) {
  const LrSection& lr = launch.config.lr;
  return fmt::format("{} of {:g}, warm-up of {}, ends at step {}", lr.schedule,
                     launch.config.optimizer.lr, counted(lr.warmup, "step"), lr.steps);
}

/// The step time, from the run's costs or from its matrix products at this machine's rate.
std::string step_text(const TrainLaunch& launch) {
  const Assignment& assignment = launch.trainer.assignment();
  const KnownCosts known = known_costs(launch.directory, assignment.layout, assignment.plan);
  double ms = 0;
  std::string basis = "from the costs.json of this run";
  if (known.costs) {
    ms = simulate(assignment.plan, assignment.layout, *known.costs).makespan * 1e3;
  } else {
    RunConfig config = launch.config;
    config.run.threads = launch.threads;
    ms = plan_report(config, {.world = assignment.world}, {})["step_ms"].get<double>();
    basis = "matrix products only";
  }
  return fmt::format("{:.2f} ms predicted ({}), {:.1f} s for {}", ms, basis,
                     ms * 1e-3 * static_cast<double>(steps_left(launch)),
                     counted(steps_left(launch), "step"));
}

std::string memory_text(const TrainLaunch& launch) {
  const double mib =
      static_cast<double>(largest_total(predict_memory(
          launch.config, launch.trainer.job(), launch.trainer.assignment(), launch.threads))) /
      (1 << 20);
  std::string text = fmt::format("{:.1f} MiB on the largest rank", mib);
  if (const auto machine = device_memory(launch.config))
    text += fmt::format(", {} free on {}", gib_text(machine->available), machine->name);
  return text;
}

std::string saves_text(const TrainLaunch& launch) {
  const SaveMemory saves =
      predict_save_memory(launch.config, launch.trainer.job(), launch.trainer.assignment());
  return fmt::format(
      "also {:.1f} MiB for the copy that checkpoints are written from and {:.1f} MiB of /dev/shm "
      "for snapshots{}",
      static_cast<double>(saves.copy) / (1 << 20), static_cast<double>(saves.snapshots) / (1 << 20),
      supervised_run().empty() ? " (under `concertina run`)" : "");
}

std::string cache_text(const CacheRoom& cache) {
  const auto tier = [](const CacheSlots& slots, std::string_view where) {
    const std::uint64_t bytes = slots.count > 0 ? slots.file_bytes() : 0;
    return fmt::format("{} {} ({:.1f} MiB)", slots.count, where,
                       static_cast<double>(bytes) / (1 << 20));
  };
  return fmt::format("of the {} samples in an epoch, each host keeps {} and {}, {:.1f} KiB each",
                     cache.samples, tier(cache.memory, "in shared memory"),
                     tier(cache.disk, "on disk"), static_cast<double>(cache.entry_bytes) / 1024);
}

std::string checkpoints_text(const TrainLaunch& launch) {
  const CheckpointSection& checkpoint = launch.config.checkpoint;
  const std::string when = checkpoint.every > 0
                               ? fmt::format("every {}", counted(checkpoint.every, "step"))
                               : "after the last step only";
  return fmt::format("{}, the newest {}{} are kept, in {}", when, checkpoint.keep,
                     checkpoint.best.empty() ? "" : " and the best by " + checkpoint.best,
                     launch.checkpoints);
}

}  // namespace

std::string train_preview(const TrainLaunch& launch) {
  const RunConfig& config = launch.config;
  const Assignment& assignment = launch.trainer.assignment();
  const Job& job = launch.trainer.job();
  std::string text = "dry run: nothing is trained or written\n";
  text += line("run", run_text(launch));
  text += line("model", fmt::format("{}, {} parameters, {}, {}", config.model.family,
                                    grouped(parameter_count(assignment.buckets)),
                                    config.numerics.compute, launch.backend->describe()));
  if (const std::string trained = trained_text(job.model, config.freeze.units); !trained.empty())
    text += line("trained", trained);
  text += line("layout",
               fmt::format("{} on {}, {}, {} in {}", short_form(assignment.layout),
                           counted(assignment.world, "rank"), config.parallel.schedule,
                           counted(job.microbatches, "microbatch"), counted(job.leaves, "leaf")));
  text += line("steps", steps_text(launch));
  text += line("tokens", tokens_text(launch));
  if (const Splits* const splits = launch.dataset->splits())
    for (const std::string& part : split_lines(*splits, launch.dataset->classes()))
      text += line("data", part);
  for (const auto& [variable, value] : from_environment(config))
    text += line("environment", fmt::format("{} = {}", variable, value));
  for (const std::string& part : launch.dataset->notes(samples_of_run(config)))
    text += line("data", part);
  text += line("learning rate", lr_text(launch));
  text += line("memory", memory_text(launch));
  text += line("memory", saves_text(launch));
  if (launch.cache.slots() > 0) text += line("activations", cache_text(launch.cache));
  text += line("step", step_text(launch));
  text += line("checkpoints", checkpoints_text(launch));
  if (launch.history.config)
    for (const std::string& change : changed_keys(*launch.history.config, launch.asked()))
      text += line("changed", change);
  return text;
}

}  // namespace concertina
