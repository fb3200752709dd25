#include "experiments/commands/command_train.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/costs/measured_costs.h"
#include "experiments/report/run_result.h"
#include "experiments/report/tracing.h"
#include "experiments/run/evaluate.h"
#include "experiments/run/gather.h"
#include "experiments/run/generate.h"
#include "experiments/run/launch_figures.h"
#include "experiments/run/monitor.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/session.h"
#include "experiments/run/signals.h"
#include "experiments/run/state_hash.h"
#include "experiments/run/utilization.h"
#include "io/run_directory.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// What all ranks must know of a step that has just ended.
struct StepStatus {
  double bubble = 0;      // idle share, mean over ranks
  double peak_bytes = 0;  // largest of any rank
  int signal = 0;         // that any rank got
};

StepStatus gather_status(RankEngine& engine, double seconds) {
  const Executor& executor = engine.executor();
  const double busy = busy_seconds(executor.row(), executor.recorder().last());
  const std::array<double, 3> mine{1 - busy / seconds, static_cast<double>(engine.arena().peak()),
                                   static_cast<double>(stop_signal())};
  const std::vector<double> all = gather_values(engine.world(), mine);
  StepStatus status;
  for (std::size_t i = 0; i < all.size(); i += mine.size()) {
    status.bubble += std::max(0.0, all[i]) / engine.world().size();
    status.peak_bytes = std::max(status.peak_bytes, all[i + 1]);
    status.signal = std::max(status.signal, static_cast<int>(all[i + 2]));
  }
  return status;
}

/// Bytes that a terminal may not like become '?'.
std::string printable(std::string text) {
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return text;
}

/// One run of `train`: the loop, and what happens around it.
class Training {
 public:
  Training(const RunConfig& config, MpiEnvironment& mpi)
      : session_(config, mpi),
        engine_(session_.engine),
        directory_(run_directory(config)),
        checkpoints_(checkpoint_directory(config)),
        identity_(session_.identity()),
        source_(session_.dataset, static_cast<std::uint64_t>(config.run.seed), config.batch.global),
        figures_(static_cast<double>(config.batch.global) * config.model.context) {}

  /// Makes or opens the run directory and loads the newest commit, if there is one.
  std::int64_t open() {
    const std::optional<std::int64_t> found = load_checkpoint(engine_, checkpoints_, identity_);
    const std::int64_t done = found.value_or(0);
    if (!found) engine_.initialize();
    if (session_.leads()) {
      monitor_ = std::make_unique<Monitor>(session_.config, directory_, done);
      const int frozen = session_.config.freeze.units;
      log::info("{}: {}, {} stage{} a pipeline, {}, {}{}", directory_,
                short_form(session_.run.layout), session_.run.layout.pipelines[0].stages.size(),
                session_.run.layout.pipelines[0].stages.size() == 1 ? "" : "s",
                session_.config.numerics.compute, session_.backend->describe(),
                frozen > 0
                    ? fmt::format(", {} of {} units frozen", frozen, session_.run.costs.size())
                    : "");
      if (session_.backend->emulates(session_.run.model->spec().activation))
        log::warn("this processor has no products of {}: they are emulated, and slower than fp32",
                  session_.config.numerics.compute);
      if (done > 0) log::info("resuming behind step {}", done);
      if (done > session_.config.run.steps)
        log::warn("the checkpoint is at step {}, run.steps is {}: nothing to train", done,
                  session_.config.run.steps);
      monitor_->event(done, "start",
                      {{"layout", short_form(session_.run.layout)},
                       {"ranks", session_.world.size()},
                       {"resumed", done > 0}});
    }
    return done;
  }

  /// `done`: from open().
  int run(std::int64_t done) {
    const std::int64_t steps = session_.config.run.steps;
    Tracing tracing(engine_, session_.config, done, directory_);
    for (std::int64_t step = done + 1; step <= steps; ++step) {
      tracing.before_step(step);
      const double start = now();
      const StepSummary summary = engine_.train(step, source_);
      const double seconds = now() - start;
      const StepStatus status = gather_status(engine_, seconds);
      tracing.after_step(step);
      summary_.last = summary;
      summary_.peak_bytes = static_cast<std::uint64_t>(status.peak_bytes);
      figures_.step(seconds, status.bubble);
      record(step, summary, status, seconds);
      if (due(step, session_.config.eval.every) && step < steps) periodic_validation(step);
      const bool stop = status.signal != 0 && step < steps;
      if (stop || due(step, session_.config.checkpoint.every) || step == steps) save(step);
      if (stop) return preempted(step, status.signal);
    }
    return finish(std::max(done, steps), tracing.last());
  }

 private:
  static bool due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

  /// Of a step of so many seconds; 0 where the peak rate is not known.
  double mfu(double seconds) const {
    const double peak = peak_flops_per_s(session_.config, session_.backend->describe());
    return peak > 0 ? model_flops(session_.config) / (seconds * peak * session_.world.size()) : 0;
  }

  void record(std::int64_t step, const StepSummary& summary, const StepStatus& status,
              double seconds) {
    if (!monitor_) return;
    const double tokens =
        static_cast<double>(session_.config.batch.global) * session_.config.model.context;
    monitor_->step({.step = step,
                    .loss = summary.loss,
                    .lr = summary.lr,
                    .grad_norm = summary.grad_norm,
                    .tokens_per_s = tokens / seconds,
                    .step_ms = seconds * 1e3,
                    .bubble = status.bubble,
                    .peak_bytes = static_cast<std::uint64_t>(status.peak_bytes),
                    .layout = short_form(session_.run.layout),
                    .mfu = mfu(seconds),
                    .time = utc_text()});
  }

  Validation validate_model(std::int64_t step, std::int64_t batches, bool final) {
    const Validation result = evaluate(engine_, session_.dataset, batches);
    if (monitor_ && result.targets > 0) monitor_->validation(step, result, final);
    summary_.eval_seconds += result.seconds;
    return result;
  }

  /// One of the evaluations before the end; says once what they cost where that is much.
  void periodic_validation(std::int64_t step) {
    const EvalSection& eval = session_.config.eval;
    const Validation result = validate_model(
        step, eval.periodic_batches > 0 ? eval.periodic_batches : eval.batches, false);
    const double between = figures_.median_seconds() * static_cast<double>(eval.every);
    const double share = result.seconds / (result.seconds + between);
    if (!monitor_ || told_eval_share_ || share < 0.1) return;
    told_eval_share_ = true;
    monitor_->clear();
    log::info(
        "an evaluation over {} takes {:.1f} s, {:.0f}% of the time from one to the next: "
        "eval.periodic_batches = n lets those before the end look at n x {} tokens alone",
        text_share(result), result.seconds, 100 * share, kEvaluationBatch);
  }

  void save(std::int64_t step) {
    const double start = now();
    session_.watchdog.at("checkpoint");
    save_checkpoint(engine_, checkpoints_, step, session_.config.checkpoint.keep, identity_);
    summary_.checkpoint_seconds += now() - start;
    if (monitor_) monitor_->event(step, "checkpoint", {{"seconds", now() - start}});
  }

  /// How the leader's kernels were issued, where that can differ.
  void log_passes() const {
    const PassCounts passes = session_.backend->pass_counts();
    if (passes.issued + passes.replayed > 0)
      log::info("{} of {} passes of units were launched as CUDA graphs, of which there are {}",
                passes.replayed, passes.issued + passes.replayed, passes.recordings);
  }

  int preempted(std::int64_t step, int signal) {
    if (monitor_) {
      monitor_->event(step, "stop", {{"signal", signal}});
      monitor_->clear();
      log_passes();
      log::warn("stopped by signal {} behind step {}; the same command resumes", signal, step);
    }
    return static_cast<int>(Exit::preempted);
  }

  /// What this launch's steps took, for predictions: costs.json.
  void save_costs() {
    session_.watchdog.at("measuring links");
    const MeasuredCosts costs =
        measure_costs(engine_, session_.config, *session_.backend, session_.threads);
    if (monitor_) write_result(directory_ + "/costs.json", to_json(costs));
  }

  /// The last point of the curve, if that is over other text, then the result.
  Validation final_validation(std::int64_t step) {
    const EvalSection& eval = session_.config.eval;
    const bool other = eval.periodic_batches > 0 && eval.periodic_batches != eval.batches;
    if (summary_.last && eval.every > 0 && other)
      validate_model(step, eval.periodic_batches, false);
    return validate_model(step, eval.batches, true);
  }

  /// result.json. A launch that trained nothing leaves an earlier one's as it was.
  void save_result(const std::string& hash, const std::optional<RunTrace>& trace) const {
    const std::string path = directory_ + "/result.json";
    if (!summary_.last && std::filesystem::exists(path)) return;
    Json result = to_json(figures_, summary_);
    const double share =
        summary_.last ? mfu(figures_.seconds() / static_cast<double>(figures_.steps())) : 0;
    if (share > 0)
      result.update({{"mfu", share},
                     {"peak_tflops_per_rank",
                      peak_flops_per_s(session_.config, session_.backend->describe()) * 1e-12}});
    if (summary_.last) result.update(predicted_figures(session_, directory_, trace));
    result.update(about_run(session_));
    result.update({{"time", utc_text()}, {"state_sha256", hash}});
    write_result(path, result);
  }

  std::string closing_words(const std::string& text) const {
    const Validation& validation = summary_.validation;
    std::string words = fmt::format("nothing was left to train at step {}\n", summary_.step);
    if (summary_.last)
      words = fmt::format("trained {} steps, loss {}, {} tokens/s\n", summary_.step,
                          number_text(summary_.last->loss), format_rate(figures_.tokens_per_s()));
    if (validation.targets > 0)
      words += fmt::format(
          "held-out loss {} nats a token, over {}; evaluations took {:.0f}% of "
          "this launch\n",
          number_text(validation.loss), text_share(validation),
          100 * summary_.eval_seconds / summary_.launch_seconds);
    if (!text.empty()) words += "\n" + printable(session_.config.generate.prompt + text) + "\n";
    return words + fmt::format("\nrun directory: {}\n", directory_);
  }

  int finish(std::int64_t step, const std::optional<RunTrace>& trace) {
    if (summary_.last) save_costs();
    summary_.step = step;
    summary_.validation = final_validation(step);
    const std::string text =
        session_.config.generate.tokens > 0
            ? generate(engine_, session_.config.generate, session_.config.run.seed)
            : "";
    session_.watchdog.at("state hash");
    const std::string hash = state_sha256(engine_);
    summary_.launch_seconds = now() - start_;
    if (monitor_) {
      monitor_->clear();
      log_passes();
      save_result(hash, trace);
      print_once(closing_words(text));
    }
    require_finite(summary_.validation, step);
    return 0;
  }

  const double start_ = now();  // of the launch
  Session session_;
  RankEngine& engine_;
  std::string directory_, checkpoints_;
  nlohmann::json identity_;
  TrainingSource source_;
  std::unique_ptr<Monitor> monitor_;
  LaunchFigures figures_;
  LaunchSummary summary_;
  bool told_eval_share_ = false;
};

int run_train(const CommonOptions& options, MpiEnvironment& mpi) {
  hold_stop_signals();
  if (options.config.data.text.empty())
    throw_input("there is no text to train on", options.config.where("data.text"),
                "--set data.text=FILE");
  // One process owns the run directory; the others need it only to be there.
  std::optional<RunDirectory> directory;
  if (mpi.world().rank() == 0)
    directory.emplace(options.config.run.dir, options.config.run.name,
                      options.config.checkpoint.dir);
  Training training(options.config, mpi);
  const std::int64_t done = training.open();  // a run that refuses this config keeps its own
  if (directory) directory->write_config(write_config(with_absolute_paths(options.config)));
  return training.run(done);
}

}  // namespace

Runner add_train(CLI::App& app) {
  return with_config<CommonOptions>(
      app, [](CLI::App&, CommonOptions&) {}, run_train);
}

}  // namespace concertina
