#include "experiments/commands/command_train.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "experiments/config/config_toml.h"
#include "experiments/costs/measured_costs.h"
#include "experiments/report/tracing.h"
#include "experiments/run/evaluate.h"
#include "experiments/run/gather.h"
#include "experiments/run/generate.h"
#include "experiments/run/monitor.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/session.h"
#include "experiments/run/signals.h"
#include "experiments/run/state_hash.h"
#include "experiments/run/text_identity.h"
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
        text_stamps_(session_.dataset->corpus().stamps()),
        identity_(session_.identity()),
        source_(session_.dataset, static_cast<std::uint64_t>(config.run.seed),
                config.batch.global) {}

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
    Tracing tracing(engine_, session_.config, done, directory_ + "/trace.json");
    for (std::int64_t step = done + 1; step <= steps; ++step) {
      tracing.before_step(step);
      const double start = now();
      const StepSummary summary = engine_.train(step, source_);
      const double seconds = now() - start;
      const StepStatus status = gather_status(engine_, seconds);
      prune();  // the newest checkpoint has led to a finite loss
      tracing.after_step(step);
      last_ = summary;
      peak_bytes_ = status.peak_bytes;
      record(step, summary, status, seconds);
      if (due(step, session_.config.eval.every) && step < steps) validate_model(step);
      const bool stop = status.signal != 0 && step < steps;
      if (stop || due(step, session_.config.checkpoint.every) || step == steps)
        save(step, stop || step == steps);
      if (stop) return preempted(step, status.signal);
    }
    finish(std::max(done, steps));
    return 0;
  }

 private:
  static bool due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

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
                    .layout = short_form(session_.run.layout)});
  }

  Validation validate_model(std::int64_t step) {
    const Validation result = evaluate(engine_, session_.dataset, session_.config.eval.batches);
    if (monitor_ && result.targets > 0) monitor_->validation(step, result.loss);
    return result;
  }

  /// One that the file system refuses is a warning, unless it is the `last` of this launch.
  void save(std::int64_t step, bool last) {
    const double start = now();
    session_.watchdog.at("checkpoint");
    try {
      require_same_text(session_.world, session_.dataset->corpus(),
                        identity_.at(kWholeText).get<std::string>(), text_stamps_);
      save_checkpoint(engine_, checkpoints_, step, identity_);
    } catch (const Error& error) {
      if (last || error.system_error() == 0) throw;
      if (!monitor_) return;
      monitor_->clear();
      log::warn("no checkpoint of step {}: {} ({}); training goes on until the next one", step,
                error.message(), error.where());
      monitor_->event(step, "no checkpoint", {{"why", error.message()}});
      return;
    }
    unpruned_ = true;
    if (monitor_) monitor_->event(step, "checkpoint", {{"seconds", now() - start}});
  }

  void prune() {
    if (std::exchange(unpruned_, false) && session_.leads())
      prune_checkpoints(checkpoints_, session_.config.checkpoint.keep);
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
    if (!monitor_) return;
    try {
      write_result(directory_ + "/costs.json", to_json(costs));
    } catch (const Error& error) {
      log::warn("no costs were written: {} ({})", error.message(), error.where());
    }
  }

  void finish(std::int64_t step) {
    if (last_) save_costs();
    const Validation validation = validate_model(step);
    prune();  // the last checkpoint is of a model that can be evaluated
    const std::string text =
        session_.config.generate.tokens > 0
            ? generate(engine_, session_.config.generate, session_.config.run.seed)
            : "";
    session_.watchdog.at("state hash");
    const std::string hash = state_sha256(engine_);
    if (!monitor_) return;
    monitor_->clear();
    log_passes();
    std::string report = fmt::format("nothing was left to train at step {}\n", step);
    if (last_) report = fmt::format("trained {} steps, loss {:.4f}\n", step, last_->loss);
    const std::string path = directory_ + "/result.json";
    // A launch that trained nothing leaves an earlier one's result as it was.
    if (last_ || !std::filesystem::exists(path)) {
      Json result = {{"steps", step}};
      if (last_)
        result.update({{"loss", last_->loss},
                       {"grad_norm", last_->grad_norm},
                       {"peak_bytes", static_cast<std::uint64_t>(peak_bytes_)}});
      if (validation.targets > 0) result["validation_loss"] = validation.loss;
      result.update({{"layout", short_form(session_.run.layout)}, {"state_sha256", hash}});
      write_result(path, result);
    }
    if (validation.targets > 0)
      report += fmt::format("held-out loss {:.4f} nats a token ({} tokens)\n", validation.loss,
                            validation.targets);
    if (!text.empty()) report += "\n" + printable(session_.config.generate.prompt + text) + "\n";
    print_once(report + fmt::format("\nrun directory: {}\n", directory_));
  }

  Session session_;
  RankEngine& engine_;
  std::string directory_, checkpoints_;
  std::vector<FileStamp> text_stamps_;  // before anything was read
  nlohmann::json identity_;
  TrainingSource source_;
  std::unique_ptr<Monitor> monitor_;
  std::optional<StepSummary> last_;  // of this launch
  double peak_bytes_ = 0;            // largest of any rank
  bool unpruned_ = true;             // the newest checkpoint has not led to anything yet
};

int run_train(const CommonOptions& options, MpiEnvironment& mpi) {
  hold_stop_signals();
  if (options.config.data.text.empty())
    throw_input("there is no text to train on", options.config.where("data.text"),
                "--set data.text=FILE");
  const std::string config = write_config(with_absolute_paths(options.config));
  // One process owns the run directory; the others need it only to be there.
  std::optional<RunDirectory> directory;
  if (mpi.world().rank() == 0)
    directory.emplace(options.config.run.dir, options.config.run.name,
                      options.config.checkpoint.dir);
  Training training(options.config, mpi);
  const std::int64_t done = training.open();  // a run that refuses this config keeps its own
  if (directory) directory->write_config(config);
  return training.run(done);
}

}  // namespace

Runner add_train(CLI::App& app) {
  return with_config<CommonOptions>(
      app, [](CLI::App&, CommonOptions&) {}, run_train);
}

}  // namespace concertina
