#include "experiments/train/training.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <csignal>
#include <numeric>
#include <span>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "experiments/adopt/idle_policies.h"
#include "experiments/evaluate/generate.h"
#include "experiments/machine/gather.h"
#include "experiments/machine/output.h"
#include "experiments/machine/signals.h"
#include "experiments/run/planning.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "experiments/train/train_result.h"
#include "parallel/runtime/step_sums.h"

namespace concertina {
namespace {

using PaceNumbers = std::array<double, sizeof(StepPace) / sizeof(double)>;

double idle_share(const Trainer& trainer, double seconds) {
  const Executor& executor = trainer.engine().executor();
  return 1 - busy_seconds(executor.row(), executor.recorder().last()) / seconds;
}

/// Null unless there is a cache budget that has an effect. Collective.
std::unique_ptr<AutoCache> open_cache(TrainLaunch& launch) {
  if (const std::string idle = idle_cache(launch.config); !idle.empty() && launch.leads())
    log::warn("{}", idle);
  if (!uses_cache(launch.config) || !launch.trains()) return nullptr;
  AutoCache::Options options{
      .dataset = launch.dataset, .numerics = launch.own_identity.dump(), .decided = {}};
  if (launch.monitor)
    options.decided = [&launch](std::int64_t step, nlohmann::ordered_json details) {
      launch.monitor->event(step, EventKind::cache, std::move(details));
    };
  return std::make_unique<AutoCache>(launch.trainer, std::move(options));
}

FreezePoints freeze_points(const TrainLaunch& launch) {
  const RunConfig& config = launch.config;
  const double per_epoch = static_cast<double>(launch.dataset->samples(Split::train)) /
                           static_cast<double>(config.batch.global);
  FreezePoints points{.steps = config.run.steps,
                      .every = config.freeze.every,
                      .epochs = 0,
                      .steps_per_epoch = per_epoch};
  const auto before_last = std::max<std::int64_t>(0, config.run.steps - 1);
  points.epochs = static_cast<std::int64_t>(static_cast<double>(before_last) / per_epoch);
  constexpr std::int64_t kFew = 1000;  // some shifted windows have one sample fewer
  if (points.epochs < kFew)
    points.epochs = TrainingSource(launch.dataset, data_seed(config), config.batch.global)
                        .epochs_done(before_last);
  return points;
}

/// Warns on rank 0 about each policy that has no effect in this run or depends on the clock.
void warn_of_policies(const TrainLaunch& launch) {
  const RunConfig& config = launch.config;
  if (!launch.leads() || !launch.trains()) return;
  const FreezeRules rules = freeze_rules(config, launch.trainer.job().model);
  const FreezePoints points = freeze_points(launch);
  const std::int64_t warmup = lr_schedule_of(config, lr_steps(config)).warmup();
  const std::string repartition = idle_repartition(config, may_freeze(rules, points));
  for (const std::string& warning :
       {idle_freezing(rules, points), early_freezing(rules, points, warmup),
        repartition.empty() ? timed_training(config) : repartition})
    if (!warning.empty()) log::warn("{}", warning);
}

}  // namespace

Training::Training(TrainLaunch& launch)
    : launch_(launch),
      trainer_(launch.trainer),
      source_(launch.dataset, data_seed(launch.config), launch.config.batch.global),
      guard_(launch),
      freezing_(launch.config, launch.trainer.job()),
      repartition_(launch.config, launch.trainer, *launch.backend, launch.threads,
                   {[this] { return cache_forecast(); }, launch.cores_shared(),
                    foreseen_freezes(freeze_rules(launch.config, launch.trainer.job().model),
                                     freeze_points(launch))}),
      policies_{&freezing_, &repartition_},
      metrics_(static_cast<double>(tokens_of_step(launch.config))),
      saves_(launch),
      done_(launch.done),
      hooks_(hooks()) {
  for (ChangePolicy* policy : policies_)
    policy->restore(launch.progress.value(policy->name(), nlohmann::json()), trainer_,
                    launch.checkpoints);
}

std::optional<int> Training::run() {
  try {
    return train_all();
  } catch (const UnreadData& error) {
    end_unread(error);
  }
}

/// Commits the finished steps before a data error ends the run, so that it resumes after them.
void Training::end_unread(const UnreadData& error) {
  if (done_ == 0) throw Error(error);
  if (launch_.leads())
    log::warn("{} ({}): the run ends after step {}", error.message(), error.where(), done_);
  saves_.save(
      done_,
      [&] {
        nlohmann::json all = progress();
        all[kUnread] = {{"where", error.where()}, {"evaluates", evaluating_}};
        return all;
      },
      true, true, /*changed=*/true);
  throw Error(error.code(), error.message(), error.where(),
              fmt::format("{}; then rerun the same command, which resumes after step {}",
                          error.fix(), done_));
}

std::optional<int> Training::train_all() {
  const RunConfig& config = launch_.config;
  const std::int64_t steps = config.run.steps;
  Tracing tracing(trainer_, config, done_, launch_.directory);
  warn_of_policies(launch_);
  cache_ = open_cache(launch_);
  stragglers_.begin(trainer_.layout(), trainer_.assignment().working, cache_ != nullptr);
  Selection& selection = launch_.selection;
  if (launch_.progress.contains(kUnread))  // repeat the evaluation that could not read its data
    if (const std::int64_t before = launch_.progress[kUnread]["evaluates"]; before >= 0)
      evaluate_step(before);
  while (done_ < steps && !selection.exhausted()) {
    if (!train_step(tracing)) return std::nullopt;
    decide(tracing);
    evaluate_step(step_.before);
    const bool last = done_ == steps || selection.exhausted();
    const bool stop = step_.signal != 0 && !last;
    // Decisions that depend on measured times are made once: no resume goes back before them.
    const bool decided =
        trainer_.assignment().batches != step_.batches && !timed_training(config).empty();
    if (stop || decided || last || is_due(step_.before, done_, config.checkpoint.every) ||
        selection.wants(done_))
      saves_.save(
          done_, [this] { return progress(); }, stop || last, stop || last || decided);
    else
      launch_.snapshots->after_step(trainer_, done_, launch_.own_identity,
                                    [this] { return progress(); });
    if (stop) return preempted(step_.signal);
  }
  return finish(tracing.last());
}

/// Trains the next step, or several combined steps; returns false if the run must go back.
bool Training::train_step(Tracing& tracing) {
  const std::int64_t first = done_ + 1;
  tracing.before_step(first);
  trainer_.tell(stop_signal());
  const double start = now();
  if (cache_) cache_->before_step(first);
  step_ = {.before = done_, .batches = trainer_.assignment().batches};
  const std::optional<StepResult> result = trained(first);
  if (!result) {
    saves_.finish();  // the run may go back to this checkpoint
    return false;
  }
  step_.result = *result;
  step_.own_seconds = now() - start;
  launch_.watchdog.step_done(done_ + step_.batches, step_.own_seconds);
  exchange_news(start);
  tracing.after_step(first);
  done_ += step_.batches;
  summary_.last = step_.result;
  metrics_.add(step_.batches, step_.seconds / step_.batches, step_.bubble);
  if (launch_.monitor) record();
  if (step_.straggler) report_straggler(*step_.straggler);
  return true;
}

void Training::exchange_news(double start) {
  launch_.watchdog.at("gathering the status of the step");
  const Executor& executor = trainer_.engine().executor();
  const auto pace = std::bit_cast<PaceNumbers>(pace_of(executor.row(), executor.recorder().last()));
  std::vector<double> mine(pace.begin(), pace.end());
  for (const StepHook& hook : hooks_) mine.push_back(hook.news());
  const std::vector<double> all = trainer_.gather_working(mine);
  step_.seconds = now() - start;
  std::vector<StepPace> paces;
  std::vector<std::vector<double>> news(hooks_.size());
  for (auto rank = all.begin(); rank != all.end(); rank += std::ssize(mine)) {
    PaceNumbers numbers;
    const auto rest = std::copy_n(rank, numbers.size(), numbers.begin()) - numbers.begin();
    paces.push_back(std::bit_cast<StepPace>(numbers));
    for (std::size_t h = 0; h < news.size(); ++h)
      news[h].push_back(rank[rest + static_cast<std::ptrdiff_t>(h)]);
  }
  for (std::size_t h = 0; h < news.size(); ++h) hooks_[h].heard(news[h]);
  if (launch_.monitor) step_.straggler = stragglers_.add(paces, step_.seconds);
}

/// The values that ranks exchange after each step, in this order.
std::vector<StepHook> Training::hooks() {
  using All = const std::vector<double>&;
  return {
      {[this] { return std::max<double>(stop_signal(), trainer_.stop_requested()); },
       [this](All all) { step_.signal = static_cast<int>(std::ranges::max(all)); }},
      {[this] { return std::max(0.0, idle_share(trainer_, step_.own_seconds)); },
       [this](All all) {
         step_.bubble = std::reduce(all.begin(), all.end()) / static_cast<double>(all.size());
       }},
      {[this] { return static_cast<double>(trainer_.peak_bytes()); },
       [this](All all) {
         summary_.peak_bytes = static_cast<std::uint64_t>(std::ranges::max(all));
       }},
      {[this] { return launch_.snapshots->news(step_.own_seconds); },
       [this](All all) { launch_.snapshots->heard(all); }},
      {[this] { return guard_.share(step_.own_seconds); },
       [this](All all) { guard_.plan(std::ranges::max(all)); }},
      {[this] { return saves_.news(); },
       [this](All all) { saves_.after_step(all, step_.result.fault == StepFault::Kind::none); }},
  };
}

/// If the state has diverged, commits the last saved state before the run ends.
std::optional<StepResult> Training::trained(std::int64_t step) {
  try {
    return guard_.train(step, source_);
  } catch (const Error& error) {
    if (error.fix().starts_with(kDivergedAdvice))
      saves_.finish_diverged();  // all working ranks know this
    throw;
  }
}

void Training::record() {
  const double seconds = step_.seconds / step_.batches;
  launch_.monitor->step(
      {.step = done_,
       .loss = step_.result.loss,
       .lr = step_.result.lr,
       .grad_norm = step_.result.grad_norm,
       .tokens_per_s = static_cast<double>(tokens_of_step(launch_.config)) / seconds,
       .step_ms = seconds * 1e3,
       .bubble = step_.bubble,
       .peak_bytes = summary_.peak_bytes,
       .layout = short_form(launch_.trainer.layout()),
       .frozen_units = trainer_.layout().frozen_units,
       .batches = step_.batches,
       .mfu = model_flops_utilization(launch_, seconds),
       .time = utc_text()},
      evaluations_left());
}

/// The cost of the remaining evaluations in training steps; a forward pass is about a third of one.
double Training::evaluations_left() const {
  const RunConfig& config = launch_.config;
  const EvalSection& eval = config.eval;
  const auto targets = static_cast<double>(launch_.dataset->targets(Split::validation));
  const double all = static_cast<double>(launch_.dataset->samples(Split::validation)) /
                     (3.0 * config.batch.global);
  const auto steps = [&](std::int64_t batches) {
    const auto most = static_cast<double>(batches * kEvaluationBatch);
    return batches > 0 && most < targets ? all * most / targets : all;
  };
  const std::int64_t periodic =
      eval.every > 0 ? (config.run.steps - 1) / eval.every - done_ / eval.every : 0;
  return static_cast<double>(std::max<std::int64_t>(0, periodic)) * steps(periodic_batches(eval)) +
         steps(final_batches(eval));
}

Validation Training::validate_model(std::int64_t step, std::int64_t batches, bool final,
                                    const std::function<bool()>& stop) {
  if (evaluated_.step == step && evaluated_.batches == batches) {
    if (launch_.monitor) launch_.monitor->validation(step, evaluated_.result, final);
    return evaluated_.result;
  }
  HeldOut held_out{.batches = batches};
  if (launch_.monitor)
    held_out.progress = [this](auto... metrics) { launch_.monitor->evaluation(metrics...); };
  Validation result = evaluate(trainer_, launch_.dataset, held_out, stop);
  if (launch_.monitor && result.targets > 0) {
    if (!measure_)
      measure_ = measure_of(launch_.config, *launch_.dataset, *launch_.tokenizer, Split::validation,
                            [this] { launch_.watchdog.beat(); });
    result.measure = *measure_;
  }
  summary_.eval_seconds += result.seconds;
  if (stopped_by_ != 0) return result;
  evaluated_ = {step, batches, result};
  evaluated_.result.seconds = 0;  // counted once only
  if (launch_.monitor && result.targets > 0) launch_.monitor->validation(step, result, final);
  return result;
}

/// Returns the cache that the layout policy may rely on, without frontiers that do not pay off.
CacheForecast Training::cache_forecast() const {
  if (!cache_) return {};
  const CacheOutlook outlook = cache_->outlook();
  if (outlook.units > 0 && !outlook.on) return {};
  return {.share = outlook.share, .read_s_per_sample = outlook.read_seconds};
}

/// Decides on changes after the latest step.
void Training::decide(Tracing& tracing) {
  const RunView view{.before = step_.before,
                     .step = done_,
                     .steps = launch_.config.run.steps,
                     .seconds = step_.seconds / step_.batches,
                     .result = step_.result,
                     .epochs_before = source_.epochs_done(step_.before),
                     .epochs = source_.epochs_done(done_)};
  Change change;
  for (ChangePolicy* policy : policies_) policy->consider(view, trainer_, change);
  std::optional<Adoption> adoption;
  if (change.next) {
    tracing.before_change();
    // A checkpoint belongs to the working ranks.
    if (change.next->assignment.working != trainer_.assignment().working) saves_.finish();
    adoption = adopt_change(change, trainer_, launch_.threads);
  }
  if (adoption) {
    saves_.changed();
    stragglers_.begin(trainer_.layout(), trainer_.assignment().working, cache_ != nullptr);
    for (ChangePolicy* policy : policies_) policy->adopted(change, *adoption);
  }
  write_events(view.step, change.events);
  if (!launch_.monitor || change.reasons.empty()) return;
  launch_.monitor->clear();
  log::info("after step {}: {}{}", view.step, fmt::join(change.reasons, "; "),
            adoption ? fmt::format("; in {:.2f} s", adoption->seconds) : "");
}

void Training::report_straggler(const Straggler& found) {
  const std::string& host = launch_.cores[static_cast<std::size_t>(found.rank)].host;
  launch_.monitor->clear();
  log::warn("after step {}: {} ({})", done_, to_text(found), host);
  nlohmann::ordered_json facts = {{"rank", found.rank},
                                  {"host", host},
                                  {"cause", found.peer < 0 ? "compute" : "link"},
                                  {"action", name_of(found.action)},
                                  {"times", found.times},
                                  {"against", found.replicas ? "replicas" : "before"},
                                  {"steps", found.steps}};
  if (found.peer >= 0) facts["from"] = found.peer;
  launch_.monitor->event(done_, EventKind::straggler, std::move(facts));
}

void Training::write_events(std::int64_t step, const std::vector<RunEvent>& events) {
  if (!launch_.monitor) return;
  for (const RunEvent& event : events) launch_.monitor->event(step, event.kind, event.facts);
}

/// Returns the state on which later decisions depend, by policy.
nlohmann::json Training::progress() const {
  nlohmann::json progress;
  for (const ChangePolicy* policy : policies_) progress[policy->name()] = policy->progress();
  if (launch_.selection.active()) progress[kBestKey] = launch_.selection.progress();
  return progress;
}

/// Evaluates after the steps (before, done()] if that is due, and also after the last step if
/// models are compared.
void Training::evaluate_step(std::int64_t before) {
  evaluating_ = before;
  const bool due = is_due(before, done_, launch_.config.eval.every);
  if (done_ < launch_.config.run.steps ? due : launch_.selection.active())
    periodic_validation(done_, due);
  evaluating_ = -1;
}

/// One of the periodic evaluations; logs their cost once if it is high.
void Training::periodic_validation(std::int64_t step, bool due) {
  const EvalSection& eval = launch_.config.eval;
  const Validation result = validate_model(step, periodic_batches(eval), false);
  if (launch_.selection.keeps()) saves_.finish();  // so that the best checkpoint so far exists
  if (launch_.selection.active()) launch_.selection.see(step, result, due);
  if (launch_.monitor)
    launch_.monitor->say(held_out_line(step, launch_.config.run.steps, result) +
                         standing(launch_.selection, step));
  const double between = metrics_.median_seconds() * static_cast<double>(eval.every);
  const double share = result.seconds / (result.seconds + between);
  if (!launch_.monitor || reported_eval_share_ || share < 0.1) return;
  reported_eval_share_ = true;
  launch_.monitor->clear();
  log::info(
      "an evaluation over {} takes {:.1f} s, {:.0f}% of the time between evaluations: "
      "eval.periodic_batches = n limits all except the last to n x {} tokens",
      text_share(result), result.seconds, 100 * share, kEvaluationBatch);
}

/// Evaluates the curve's last point if that uses another part of the text, then the final model.
Validation Training::final_validation(const std::function<bool()>& stop) {
  const EvalSection& eval = launch_.config.eval;
  const bool other = periodic_batches(eval) != final_batches(eval);
  if (summary_.last && eval.every > 0 && other && evaluated_.step != done_)
    validate_model(done_, periodic_batches(eval), false, stop);
  if (stopped_by_ != 0) return {};
  return validate_model(done_, final_batches(eval), true, stop);
}

/// Whether any rank received a stop signal. Collective.
bool Training::stop_requested() {
  launch_.watchdog.at("gathering signals");
  const auto mine = static_cast<double>(stop_signal());
  stopped_by_ = static_cast<int>(largest_values(launch_.world, std::span(&mine, 1))[0]);
  return stopped_by_ != 0;
}

int Training::preempted(int signal) {
  if (launch_.monitor) {
    launch_.monitor->event(done_, EventKind::stop, {{"signal", signal}});
    launch_.monitor->clear();
    log_passes(*launch_.backend);
    log::warn(
        "stopped by {}{} after step {}, whose checkpoint is saved; rerun the same command to "
        "resume",
        signal_text(signal), signal == SIGTERM ? " (mpirun forwards Ctrl-C as SIGTERM)" : "",
        done_);
  }
  return static_cast<int>(Exit::preempted);
}

/// Called after the last step, whose state is saved: writes and prints the results.
int Training::finish(const std::optional<RunTrace>& trace) {
  const RunConfig& config = launch_.config;
  const auto stop = [this] { return stop_requested(); };
  for (ChangePolicy* policy : policies_) write_events(done_, policy->closing());
  if (summary_.last)
    save_costs(launch_, repartition_.costs(), repartition_.moves(trainer_),
               cache_ ? cache_->read_s_per_byte() : 0);
  if (stop()) return preempted(stopped_by_);
  summary_.step = done_;
  summary_.validation = final_validation(stop);
  if (stopped_by_ != 0) return preempted(stopped_by_);
  std::string text;
  if (config.generate.tokens > 0)
    text =
        launch_.generate(std::array{Prompt{config.generate.prompt, config.run.seed}}, stop)[0].text;
  if (stopped_by_ != 0 || stop()) return preempted(stopped_by_);
  const std::string hash = state_sha256(trainer_);
  if (cache_) summary_.cache = cache_->use();
  summary_.checkpoint_seconds = saves_.seconds();
  summary_.launch_seconds = now() - launch_.started;
  std::optional<Error> no_result;
  if (launch_.monitor) {
    launch_.monitor->clear();
    log_passes(*launch_.backend);
    try {
      save_result(launch_, metrics_, summary_, hash, trace);
    } catch (const Error& error) {
      no_result = error;
    }
    print_once(closing_words(launch_, metrics_, summary_, text));
  }
  require_finite(summary_.validation, done_);
  saves_.prune();  // the evaluation has confirmed the last checkpoint
  if (no_result) throw *no_result;
  return 0;
}

}  // namespace concertina
