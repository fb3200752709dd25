#include "experiments/commands/command_train.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "core/version.h"
#include "experiments/config/config_toml.h"
#include "experiments/costs/measured_costs.h"
#include "experiments/report/run_result.h"
#include "experiments/report/tracing.h"
#include "experiments/run/evaluate.h"
#include "experiments/run/gather.h"
#include "experiments/run/generate.h"
#include "experiments/run/launch_figures.h"
#include "experiments/run/launch_record.h"
#include "experiments/run/monitor.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_history.h"
#include "experiments/run/session.h"
#include "experiments/run/signals.h"
#include "experiments/run/state_hash.h"
#include "experiments/run/text_identity.h"
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
  engine.watchdog()->at("gather of the step's status");
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
std::string plain_ascii(std::string text) {
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return text;
}

struct TrainOptions : CommonOptions {
  bool from_scratch = false;
};

/// One run of `train`: the loop, and what happens around it.
class Training {
 public:
  /// Refuses what cannot run, and has written nothing then.
  Training(const TrainOptions& options, MpiEnvironment& mpi)
      : session_(options.config, mpi, "train"),
        engine_(session_.engine),
        from_scratch_(options.from_scratch),
        directory_(run_directory(session_.config)),
        checkpoints_(checkpoint_directory(session_.config)),
        text_stamps_(session_.dataset->corpus().stamps()),
        identity_(session_.identity()),
        source_(session_.dataset, data_seed(session_.config), session_.config.batch.global),
        figures_(static_cast<double>(session_.config.batch.global) *
                 session_.config.model.context) {}

  /// Makes or opens the run directory and loads the newest commit, if there is one.
  void open() {
    const RunConfig& config = session_.config;
    if (session_.leads()) {  // one process owns the run directory; the others need it to be there
      owned_.emplace(config.run.dir, config.run.name, config.checkpoint.dir);
      history_ = read_history(directory_);
    }
    nlohmann::json stored;
    const std::optional<std::int64_t> found =
        load_checkpoint(engine_, checkpoints_, identity_, &stored);
    done_ = found.value_or(0);
    session_.launch_watch.committed(done_);
    if (session_.leads()) found ? refuse_from_scratch() : start_anew();
    if (!found) engine_.initialize();
    settle_lr_steps(stored);
    if (session_.leads()) open_logs(stored);
    session_.begin();
  }

  int run() {
    const std::int64_t steps = session_.config.run.steps, first = done_ + 1;
    Tracing tracing(engine_, session_.config, done_, directory_);
    for (std::int64_t step = first; step <= steps; ++step) {
      tracing.before_step(step);
      const double start = now();
      const StepSummary summary = engine_.train(step, source_);
      const double seconds = now() - start;
      const StepStatus status = gather_status(engine_, seconds);
      prune();  // the newest checkpoint has led to a finite loss
      tracing.after_step(step);
      summary_.last = summary;
      summary_.peak_bytes = static_cast<std::uint64_t>(status.peak_bytes);
      figures_.step(seconds, status.bubble);
      done_ = step;
      record(step, summary, status, seconds);
      if (due(step, session_.config.eval.every) && step < steps) periodic_validation(step);
      const bool stop = status.signal != 0 && step < steps;
      if (stop || due(step, session_.config.checkpoint.every) || step == steps)
        save(step, stop || step == steps);
      if (stop) return preempted(status.signal);
    }
    return finish(tracing.last());
  }

  /// The launch is over; with an exit code that is not run()'s where an error has ended it.
  void ended(int code) {
    if (launch_) launch_->end(done_, code);
  }

 private:
  /// On rank 0, where no commit was found.
  void start_anew() {
    if (!from_scratch_) return require_no_steps(history_, session_.config);
    move_aside(directory_);
    history_ = {};
  }

  void refuse_from_scratch() const {
    if (!from_scratch_) return;
    throw_input(fmt::format("--from-scratch, but there are checkpoints up to step {}", done_),
                checkpoints_, "another run.name, or move these checkpoints away");
  }

  /// The step at which the learning rate ends: as the config says, else as it was when the run
  /// began. Rank 0 knows the run directory, and says it to all.
  void settle_lr_steps(const nlohmann::json& stored) {
    const RunConfig& config = session_.config;
    std::int64_t steps = lr_steps(config);
    if (session_.leads() && config.lr.steps == 0 && done_ > 0) {
      if (stored.contains("lr.steps"))
        steps = std::stoll(stored["lr.steps"].get<std::string>());
      else if (history_.config)  // a checkpoint of a program that had no such key
        steps = lr_steps(*history_.config);
    }
    session_.world.broadcast(std::as_writable_bytes(std::span(&steps, 1)), 0).wait();
    engine_.set_lr_steps(steps);
    identity_["lr.steps"] = std::to_string(steps);
    resolved_ = config;
    resolved_.lr.steps = steps;
    if (session_.leads() && steps != config.run.steps)
      log::info("the learning rate reaches its end at step {} (lr.steps), the run at step {}",
                steps, config.run.steps);
  }

  /// On rank 0: what a reader of the log and of the run directory has to know of this launch.
  void open_logs(const nlohmann::json& stored) {
    const bool trains = done_ < session_.config.run.steps;
    const Json schedule = keep_schedule(session_.config, directory_);
    log_differences(stored, trains);
    // Before any other file: from then on the directory is a run.
    if (trains || !history_.config)
      owned_->write_config(write_config(with_absolute_paths(resolved_)));
    monitor_ = std::make_unique<Monitor>(session_.config, directory_, done_);
    log_start();
    Json facts = launch_facts(session_, done_);
    facts["schedule"] = schedule;
    launch_.emplace(directory_ + "/launches.jsonl", std::move(facts));
    monitor_->event(done_, "start",
                    {{"layout", short_form(session_.run.layout)},
                     {"ranks", session_.world.size()},
                     {"resumed", done_ > 0}});
  }

  /// What is not as it was, though the run may go on.
  void log_differences(const nlohmann::json& stored, bool trains) const {
    for (const auto& [key, now] : identity_.items())
      if (may_change(key) && stored.contains(key) && stored[key] != now)
        log::info("{}: trained in {} so far, goes on in {}", key, stored[key].get<std::string>(),
                  now.get<std::string>());
    if (!history_.config) return;
    const std::vector<std::string> changes = changed_keys(*history_.config, resolved_);
    if (changes.empty()) return;
    if (trains)
      log::info("goes on with other keys than before: {}", fmt::join(changes, ", "));
    else
      log::warn("nothing is left to train, and config.toml stays as it is: this launch has {}",
                fmt::join(changes, ", "));
  }

  void log_start() const {
    const RunConfig& config = session_.config;
    const int frozen = config.freeze.units;
    const auto stages = std::ssize(session_.run.layout.pipelines[0].stages);
    log::info("{}: {}, {} per pipeline, {}, {}{}", directory_, short_form(session_.run.layout),
              counted(stages, "stage"), config.numerics.compute, session_.backend->describe(),
              frozen > 0 ? fmt::format(", {} of {} units frozen", frozen, session_.run.costs.size())
                         : "");
    if (session_.backend->emulates(session_.run.model->spec().activation))
      log::warn("this processor has no {} matrix instructions: emulation is slower than fp32",
                config.numerics.compute);
    if (done_ > 0) log::info("resuming after step {}", done_);
    if (done_ > config.run.steps)
      log::warn("the checkpoint is at step {}, run.steps is {}: nothing to train", done_,
                config.run.steps);
  }

  static bool due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

  /// The model FLOPs utilization of a step of `seconds`; 0 where the peak rate is not known.
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

  Validation validate_model(std::int64_t step, std::int64_t batches, bool final,
                            const std::function<bool()>& stop = {}) {
    const Validation result = evaluate(engine_, session_.dataset, batches, stop);
    summary_.eval_seconds += result.seconds;
    if (stopped_by_ != 0) return result;
    if (monitor_ && result.targets > 0) monitor_->validation(step, result, final);
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

  /// One that the file system refuses is a warning, unless it is the `last` of this launch.
  void save(std::int64_t step, bool last) {
    const double start = now();
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
    session_.launch_watch.committed(step);
    summary_.checkpoint_seconds += now() - start;
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
      log::info("{} of {} unit passes were launched as CUDA graphs ({} graphs)", passes.replayed,
                passes.issued + passes.replayed, passes.recordings);
  }

  int preempted(int signal) {
    if (monitor_) {
      monitor_->event(done_, "stop", {{"signal", signal}});
      monitor_->clear();
      log_passes();
      log::warn("stopped by signal {} after step {}; the same command resumes", signal, done_);
    }
    return static_cast<int>(Exit::preempted);
  }

  /// What this launch's steps took, for predictions: costs.json.
  void save_costs() {
    const Watchdog::Patience patience(&session_.watchdog, "measuring links");
    const MeasuredCosts costs =
        measure_costs(engine_, session_.config, *session_.backend, session_.threads);
    if (!monitor_) return;
    try {
      write_result(directory_ + "/costs.json", to_json(costs));
    } catch (const Error& error) {
      log::warn("no costs were written: {} ({})", error.message(), error.where());
    }
  }

  /// Whether any rank was told to stop. Collective.
  bool told_to_stop() {
    session_.watchdog.at("gather of signals");
    const auto mine = static_cast<double>(stop_signal());
    for (const double signal : gather_values(session_.world, std::span(&mine, 1)))
      stopped_by_ = std::max(stopped_by_, static_cast<int>(signal));
    return stopped_by_ != 0;
  }

  /// The last point of the curve, if that is over other text, then the result.
  Validation final_validation(const std::function<bool()>& stop) {
    const EvalSection& eval = session_.config.eval;
    const bool other = eval.periodic_batches > 0 && eval.periodic_batches != eval.batches;
    if (summary_.last && eval.every > 0 && other)
      validate_model(done_, eval.periodic_batches, false, stop);
    if (stopped_by_ != 0) return {};
    return validate_model(done_, eval.batches, true, stop);
  }

  /// After the last step, whose state is saved: what is shown of it.
  int finish(const std::optional<RunTrace>& trace) {
    const auto stop = [this] { return told_to_stop(); };
    if (summary_.last) save_costs();
    if (stop()) return preempted(stopped_by_);
    summary_.step = done_;
    summary_.validation = final_validation(stop);
    if (stopped_by_ != 0) return preempted(stopped_by_);
    std::string text;
    if (session_.config.generate.tokens > 0)
      text = generate(engine_, session_.config.generate, session_.config.run.seed, stop);
    if (stopped_by_ != 0 || stop()) return preempted(stopped_by_);
    const std::string hash = state_sha256(engine_);
    summary_.launch_seconds = now() - start_;
    if (monitor_) {
      monitor_->clear();
      log_passes();
      save_result(hash, trace);
      print_once(closing_words(text));
    }
    require_finite(summary_.validation, done_);
    prune();  // the last checkpoint is of a model that can be evaluated
    return 0;
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
    if (!session_.isa.empty()) result["isa"] = session_.isa;
    result.update({{"version", program_version().number},
                   {"commit", program_version().commit},
                   {"time", utc_text()},
                   {"state_sha256", hash}});
    write_result(path, result);
  }

  std::string closing_words(const std::string& text) const {
    const Validation& validation = summary_.validation;
    std::string words = fmt::format("nothing was left to train at step {}\n", summary_.step);
    if (summary_.last)
      words = fmt::format("trained {}, loss {}, {} tokens/s\n", counted(summary_.step, "step"),
                          number_text(summary_.last->loss), format_rate(figures_.tokens_per_s()));
    if (validation.targets > 0)
      words += fmt::format(
          "held-out loss {} nats per token, over {}; evaluations took {:.0f}% of "
          "this launch\n",
          number_text(validation.loss), text_share(validation),
          100 * summary_.eval_seconds / summary_.launch_seconds);
    if (!text.empty()) words += "\n" + plain_ascii(session_.config.generate.prompt + text) + "\n";
    return words + fmt::format("\nrun directory: {}\n", directory_);
  }

  const double start_ = now();  // of the launch
  Session session_;
  RankEngine& engine_;
  bool from_scratch_;
  std::string directory_, checkpoints_;
  std::vector<FileStamp> text_stamps_;  // before anything was read
  nlohmann::json identity_;
  RunConfig resolved_;                 // with the step at which the learning rate ends
  std::optional<RunDirectory> owned_;  // on rank 0, as are the next two
  RunHistory history_;
  std::optional<LaunchRecord> launch_;
  TrainingSource source_;
  std::unique_ptr<Monitor> monitor_;
  LaunchFigures figures_;
  LaunchSummary summary_;
  bool told_eval_share_ = false;
  bool unpruned_ = true;   // the newest checkpoint has not led to anything yet
  std::int64_t done_ = 0;  // steps
  int stopped_by_ = 0;     // signal that any rank got after the last step
};

int run_train(const TrainOptions& options, MpiEnvironment& mpi) {
  if (options.config.data.text.empty())
    throw_input("there is no text to train on", options.config.where("data.text"),
                "--set data.text=FILE");
  write_config(with_absolute_paths(options.config));  // refuses what no config file can hold
  Training training(options, mpi);
  training.open();
  int code = static_cast<int>(Exit::failure);
  try {
    code = training.run();
  } catch (const Error& error) {
    training.ended(static_cast<int>(error.code()));
    throw;
  }
  training.ended(code);
  return code;
}

void add_train_options(CLI::App& app, TrainOptions& options) {
  app.add_flag("--from-scratch", options.from_scratch,
               "begin at step 0 where a run has logs but no checkpoint; the logs are moved aside");
}

}  // namespace

Runner add_train(CLI::App& app) {
  return with_config<TrainOptions>(app, add_train_options, run_train);
}

}  // namespace concertina
