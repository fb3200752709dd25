#include "experiments/study/study_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/machine/signals.h"
#include "experiments/record/progress.h"
#include "experiments/record/run_history.h"
#include "experiments/study/results.h"
#include "experiments/study/trial_launch.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

constexpr int kMostRequeues = 3;  // in a row without a later checkpoint

/// The file that stores the count, since several processes may launch a trial.
std::string requeues_of(const std::string& trial) {
  return trial + "/" + kRequeuesFile;
}

/// Counts an interrupted launch of the trial in folder `trial`. Returns the number of consecutive
/// interruptions without a later checkpoint, including this one; 0 if there is a later checkpoint.
int count_requeue(const std::string& trial) {
  constexpr std::uint64_t kMostRequeueBytes = 4096;
  const std::string path = requeues_of(trial);
  std::int64_t before = 0;
  int launches = 0;
  if (is_file(path)) {
    const auto json = parse_json(read_file(path, kMostRequeueBytes));
    if (json.is_object() && json.value("/step"_json_pointer, nlohmann::json()).is_number() &&
        json.value("/launches"_json_pointer, nlohmann::json()).is_number()) {
      before = json["step"].get<std::int64_t>();
      launches = json["launches"].get<int>();
    }
  }
  const auto commit = newest_commit(run_file(trial + "/run", kCheckpointFolder));
  const std::int64_t step = commit ? commit->step : 0;
  launches = step > before ? 0 : launches + 1;
  atomic_replace(path, nlohmann::json{{"step", step}, {"launches", launches}}.dump() + "\n");
  return launches;
}

/// Resets the count.
void forget_requeues(const std::string& trial) {
  std::error_code error;
  std::filesystem::remove(requeues_of(trial), error);
}

}  // namespace

std::optional<std::vector<int>> CoreBudget::take(int cores) {
  const auto wanted = static_cast<std::ptrdiff_t>(std::clamp(cores, 1, count()));
  if (std::ssize(free_) < wanted) return std::nullopt;
  std::vector<int> taken(free_.begin(), free_.begin() + wanted);
  free_.erase(free_.begin(), free_.begin() + wanted);
  return taken;
}

void CoreBudget::give_back(const std::vector<int>& cores) {
  free_.insert(free_.end(), cores.begin(), cores.end());
  std::ranges::sort(free_);
}

StudyProgress::StudyProgress(std::FILE* stream, std::string metric)
    : line_(stream), metric_(std::move(metric)), began_(now()) {}

void StudyProgress::started(const TrialRecord& trial) {
  if (line_.on_terminal()) return;  // the status line shows the number of running trials
  line_.say(fmt::format("trial {} started: {}", trial.number, settings_text(trial.settings)));
}

void StudyProgress::ended(const TrialRecord& trial, double seconds) {
  ++ended_;
  std::string metric;
  for (const std::string& name : {metric_, std::string("validation_loss"), std::string("loss")})
    if (const Cell cell = cell_of(trial, name); std::holds_alternative<double>(cell)) {
      metric = fmt::format(", {} {}", name, number_text(std::get<double>(cell)));
      break;
    }
  line_.say(fmt::format("trial {} {} in {}{}: {}{}", trial.number, name_of(trial.state),
                        format_duration(seconds), metric, settings_text(trial.settings),
                        trial.error.empty() ? "" : "\n  " + trial.error));
}

double StudyProgress::seconds_left(int running, std::optional<int> left) const {
  if (ended_ == 0 || !left) return -1;
  return (now() - began_) / ended_ * (*left + 0.5 * running);
}

void StudyProgress::update(int running, std::optional<int> left) {
  if (!line_.on_terminal() || now() < last_draw_ + 0.5) return;
  last_draw_ = now();
  line_.draw(fmt::format("{} finished, {} running, {} left, ETA {}", ended_, running,
                         left ? std::to_string(*left) : "?",
                         format_duration(seconds_left(running, left))));
}

StudyRun::StudyRun(const StudySpec& spec, StudyFolder& folder, StudyRunOptions options)
    : spec_(spec),
      folder_(folder),
      paths_(folder.paths()),
      options_(std::move(options)),
      budget_(options_.cores.empty() ? std::vector<int>{0} : options_.cores),
      progress_(stderr, spec.search.metric) {
  sampler_ = options_.trial > 0
                 ? list_sampler(spec_, [&](int number) { return number == options_.trial; })
                 : method_of(spec_.search).make(spec_, folder_.trials());
}

StudySummary StudyRun::run(const std::function<int()>& stopped,
                           const std::function<void()>& pause) {
  for (;;) {
    if (stopped() != 0) {
      stop_all();
      return summary(true);
    }
    while (start_next()) {
    }
    if (running_.empty() && !waiting_ && !stop_waits()) return summary(cut_short_);
    progress_.update(static_cast<int>(running_.size()), sampler_->left());
    pause();
    for (auto trial = running_.begin(); trial != running_.end();) {
      const std::optional<int> code = trial->poll();
      if (!code) {
        ++trial;
        continue;
      }
      budget_.give_back(trial->cores());
      finish(*trial, *code);
      trial = running_.erase(trial);
    }
  }
}

bool StudyRun::start_next() {
  if (static_cast<int>(running_.size()) >= spec_.launch.jobs) return false;
  if (!waiting_) waiting_ = sampler_->next(running_.empty());
  if (!waiting_) return false;
  std::optional<std::vector<int>> cores;
  try {
    cores = cores_for(*waiting_);
    if (!cores) return false;
    const TrialTask task = *std::exchange(waiting_, std::nullopt);
    if (!start(task, *cores)) budget_.give_back(*cores);
  } catch (const Error& error) {  // the trial cannot start, but others can
    const TrialTask task = waiting_ ? *std::exchange(waiting_, std::nullopt) : TrialTask{};
    if (task.trial.number == 0) throw;
    refused(task,
            fmt::format("error: {}; at: {}; try: {}", error.message(), error.where(), error.fix()));
  }
  return true;
}

std::optional<std::vector<int>> StudyRun::cores_for(const TrialTask& task) {
  const RunConfig config = launch_config(spec_, paths_, task);
  const int ranks = ranks_of(spec_, task.trial.settings, config);
  const int share = std::max(1, budget_.count() / std::max(1, spec_.launch.jobs) / ranks);
  return budget_.take(ranks * (config.run.threads > 0 ? config.run.threads : share));
}

bool StudyRun::start(const TrialTask& task, std::vector<int> cores) {
  const int number = task.trial.number;
  const RunConfig config = launch_config(spec_, paths_, task);
  std::optional<FileLock> lock = claim(number);
  if (!lock) return false;
  if (kill_marked(trial_mark(paths_, number)) > 0)
    log::info("trial {}: killed leftover processes from an earlier launch of the study", number);
  if (is_finished(paths_.run(number), config)) {
    end(trial_outcome(spec_, paths_, task, config, 0, stored(number)), 0);
    return false;
  }
  write_overrides(spec_, paths_, task, config);
  const TrialRecord open{.number = number, .settings = task.trial.settings};
  if (method_of(spec_.search).proposes()) folder_.save(open);
  const ChildOptions child = trial_child(spec_, paths_, task.trial, config, options_.program,
                                         options_.cores.empty() ? std::vector<int>() : cores);
  running_.emplace_back(spec_, paths_, task, config, std::move(*lock), child, std::move(cores));
  progress_.started(open);
  return true;
}

std::optional<FileLock> StudyRun::claim(int number) {
  std::optional<FileLock> lock;
  try {
    lock = folder_.lock(number);
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    run_by_others_.emplace(number, error.message());
    log::info("trial {} is skipped: {}", number, error.message());
    return std::nullopt;
  }
  // A search compares trials at each rung, so one process writes all records.
  const TrialRecord* found = stored(number);
  if (!method_of(spec_.search).independent() || found == nullptr ||
      found->state == TrialState::open)
    return lock;
  log::info("trial {} was run by another process: {}", number, name_of(found->state));
  return std::nullopt;
}

void StudyRun::finish(TrialProcess& trial, int code) {
  const int number = trial.task().trial.number;
  trial.end_rest();
  if (trial.cut_short(code, options_.several_nodes)) {
    go_on_later(trial, code);
    return;
  }
  end(trial.record(code, stored(number)), trial.seconds());
}

void StudyRun::go_on_later(const TrialProcess& trial, int code) {
  const int number = trial.task().trial.number;
  // Launches that lost nodes are limited separately, by Slurm's count of restarts.
  const bool lost = options_.several_nodes && code != static_cast<int>(Exit::preempted);
  if (lost || count_requeue(paths_.trial(number)) < kMostRequeues) {
    cut_short_ = true;
    log::info("trial {} was interrupted and resumes in another launch (exit code {})", number,
              code);
    return;
  }
  TrialRecord stuck = trial.record(code, stored(number));
  stuck.state = TrialState::failed;
  stuck.error = fmt::format(
      "error: interrupted {} times in a row without a later checkpoint (exit code {}); at: "
      "{}; "
      "try: more time per launch, or a smaller checkpoint.every; then study run with "
      "--retry-failed",
      kMostRequeues, code, paths_.log(number));
  end(stuck, trial.seconds());
}

const TrialRecord* StudyRun::stored(int number) const {
  const auto found = folder_.trials().find(number);
  return found == folder_.trials().end() ? nullptr : &found->second;
}

void StudyRun::refused(const TrialTask& task, const std::string& error) {
  end({.number = task.trial.number,
       .settings = task.trial.settings,
       .state = TrialState::failed,
       .error = error},
      0);
}

void StudyRun::end(const TrialRecord& trial, double seconds) {
  forget_requeues(paths_.trial(trial.number));
  compare_text(trial);
  folder_.save(trial);
  sampler_->tell(trial);
  progress_.ended(trial, seconds);
}

void StudyRun::compare_text(const TrialRecord& trial) {
  const auto text = trial.facts.find("text");
  const bool asked = std::ranges::any_of(
      trial.settings, [](const auto& setting) { return setting.first.starts_with("data."); });
  if (other_text_ || asked || text == trial.facts.end()) return;
  for (const auto& [number, other] : folder_.trials()) {
    const auto found = other.facts.find("text");
    if (found == other.facts.end()) continue;
    other_text_ = found->second != text->second;
    if (other_text_)
      log::warn(
          "data.text changed during the study: trials {} and {} were trained on different "
          "texts; `study table` will not average them",
          trial.number, number);
    return;  // the first trial represents all earlier ones
  }
}

void StudyRun::stop_all() {
  progress_.clear();
  for (TrialProcess& trial : running_) trial.request_stop();
  const double stop_time = now();
  while (!running_.empty() && now() < stop_time + options_.grace) {
    running_.remove_if([&](TrialProcess& trial) {
      const std::optional<int> code = trial.exit_code();
      if (code && options_.requeued) go_on_later(trial, *code);
      return code.has_value();
    });
    usleep(50'000);
  }
  running_.clear();  // kills the remaining trials
}

StudySummary StudyRun::summary(bool interrupted) {
  progress_.clear();
  folder_.settle();
  StudySummary summary;
  summary.interrupted = interrupted;
  summary.run_by_others = run_by_others_;
  const std::string& metric = spec_.search.metric;
  double best = 0;
  Trials ranked;
  for (const auto& [number, trial] : folder_.trials()) {
    const TrialState state = trial.state;
    summary.done += state == TrialState::done;
    summary.failed += state == TrialState::failed;
    summary.timed_out += state == TrialState::timed_out;
    summary.stopped += state == TrialState::stopped;
    const Cell cell = cell_of(trial, metric);
    const auto* value = std::get_if<double>(&cell);
    if (state != TrialState::done || value == nullptr || std::isnan(*value)) continue;
    ranked.push_back(&trial);
    if (!summary.best || (spec_.search.minimise ? *value < best : *value > best)) {
      summary.best = trial;
      best = *value;
    }
  }
  summary.incomparable = why_incomparable(ranked, metric);
  if (!summary.incomparable.empty()) summary.best.reset();
  return summary;
}

}  // namespace concertina
