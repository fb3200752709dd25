#include "experiments/study/study_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/signals.h"
#include "experiments/study/launcher.h"
#include "io/file.h"
#include "io/paths.h"
#include "io/sha256.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr double kGraceSeconds = 30;       // for a checkpoint, once [stop] ends a trial
constexpr double kLimitGraceSeconds = 10;  // once its time is over
constexpr int kLostNode = 205;             // mpirun's exit code where it lost one (Open MPI 4)

int signal_number(const std::string& name) {
  return name == "TERM" ? SIGTERM : name == "INT" ? SIGINT : SIGUSR1;
}

/// Whether the run has a checkpoint to go on from.
bool has_checkpoint(const std::string& run) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run + "/checkpoints", error))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

/// A config without where its run is: the same for the same training.
std::string config_digest(RunConfig config) {
  config.run.dir = RunSection().dir;
  config.run.name = RunSection().name;
  return sha256_hex(write_config(config));
}

std::string template_of(const StudySpec& spec) {
  return spec.launch.command.empty() ? kUsualLauncher : spec.launch.command;
}

/// What the trial's directory is called by all processes of it.
std::string mark_of(const std::string& directory) {
  return fs::absolute(directory).lexically_normal().string();
}

}  // namespace

StudyRun::StudyRun(const StudySpec& spec, StudyFolder& folder, StudyRunOptions options)
    : spec_(spec),
      folder_(folder),
      paths_(folder.paths()),
      options_(std::move(options)),
      budget_(options_.cores.empty() ? std::vector<int>{0} : options_.cores),
      progress_(stderr, spec.search.metric) {
  sampler_ = options_.trial > 0 ? one_trial_sampler(spec_, options_.trial)
                                : make_sampler(spec_, folder_.trials());
}

void require_launcher(const StudySpec& spec) {
  const std::string launcher = split_words(template_of(spec), "launch.command")[0];
  if (launcher != "{program}" && find_program(launcher).empty())
    throw_input(fmt::format("the launcher '{}' is not there, or cannot be executed", launcher),
                "launch.command",
                "a program on PATH, or its path: \"mpirun -n {ranks} {program} {args}\"");
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
      const std::optional<int> code = trial->child.exit_code();
      if (!code) {
        watch(*trial++);
        continue;
      }
      budget_.give_back(trial->cores);
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
  } catch (const Error& error) {  // the trial cannot even start: the others can
    const TrialTask task = waiting_ ? *std::exchange(waiting_, std::nullopt) : TrialTask{};
    if (task.trial.number == 0) throw;
    refused(task,
            fmt::format("error: {}; at: {}; try: {}", error.message(), error.where(), error.fix()));
  }
  return true;
}

std::optional<std::vector<int>> StudyRun::cores_for(const TrialTask& task) {
  const RunConfig config = trial_config(task);
  const int ranks = ranks_of(spec_, task.trial.settings, config);
  const int share = std::max(1, budget_.count() / std::max(1, spec_.launch.jobs) / ranks);
  return budget_.take(ranks * (config.run.threads > 0 ? config.run.threads : share));
}

RunConfig StudyRun::trial_config(const TrialTask& task) const {
  RunConfig config = config_of(spec_, task.trial.settings);
  config.run.dir = paths_.trial(task.trial.number);
  config.run.name = "run";
  if (task.steps > 0) {
    // The learning rate goes its way as if the run were to reach its end.
    if (config.lr.steps == 0) config.lr.steps = config.run.steps;
    config.run.steps = task.steps;
  }
  validate(config);
  return config;
}

bool StudyRun::start(const TrialTask& task, std::vector<int> cores) {
  const int number = task.trial.number;
  const RunConfig config = trial_config(task);
  std::optional<FileLock> lock = claim(number);
  if (!lock) return false;
  const std::string mark = mark_of(paths_.trial(number));
  if (kill_marked(mark) > 0)
    log::info("trial {}: ended what an earlier launch of the study had left", number);
  if (finished_steps(paths_.run(number)) == config.run.steps) {
    end(outcome(task, config, 0), 0);
    return false;
  }
  write_overrides(task, config);
  if (spec_.search.method == "sampler") {
    StoredTrial open;
    open.record.number = number;
    open.record.settings = task.trial.settings;
    folder_.save(open);
  }
  ChildOptions child{
      .words = launch_words(template_of(spec_), ranks_of(spec_, task.trial.settings, config),
                            options_.program, arguments(task)),
      .environment = launch_environment(),
      .cpus = options_.cores.empty() ? std::vector<int>() : cores,
      .log = paths_.log(number),
      .mark = mark};
  UnderWay trial{.task = task,
                 .config = config,
                 .lock = std::move(*lock),
                 .child = ChildProcess(child),
                 .cores = std::move(cores),
                 .started = now()};
  if (!spec_.stop.metric.empty())
    trial.follower.emplace(paths_.run(number), spec_.stop, spec_.search.minimise);
  running_.push_back(std::move(trial));
  TrialRecord record;
  record.number = number;
  record.settings = task.trial.settings;
  progress_.started(record);
  return true;
}

std::optional<FileLock> StudyRun::claim(int number) {
  std::optional<FileLock> lock;
  try {
    lock = folder_.lock(number);
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    elsewhere_.emplace(number, error.message());
    log::info("trial {} is left out: {}", number, error.message());
    return std::nullopt;
  }
  // A search compares trials rung by rung: there, one process writes all records.
  const auto found = folder_.trials().find(number);
  if (spec_.search.method != "all" || found == folder_.trials().end() ||
      found->second.record.state == TrialState::open)
    return lock;
  log::info("trial {} was run by another process: {}", number, name_of(found->second.record.state));
  return std::nullopt;
}

std::vector<std::string> StudyRun::arguments(const TrialTask& task) const {
  std::vector<std::string> words = {"train"};
  for (const std::string& base : paths_.base_files) words.push_back("@" + base);
  words.push_back("@" + paths_.overrides(task.trial.number));
  const std::string run = paths_.run(task.trial.number);
  // Killed before its first checkpoint: its log lines are moved aside.
  if (fs::exists(run + "/metrics.jsonl") && !has_checkpoint(run))
    words.emplace_back("--from-scratch");
  return words;
}

void StudyRun::write_overrides(const TrialTask& task, const RunConfig& config) const {
  std::map<std::string, std::map<std::string, std::string>> sections;
  const auto add = [&](const std::string& key) {
    const Key* found = find_key(key);
    if (found == nullptr) return;  // ranks
    const std::size_t dot = key.find('.');
    sections[key.substr(0, dot)][key.substr(dot + 1)] = value_text(*found, config);
  };
  for (const char* key : {"run.dir", "run.name", "generate.tokens"}) add(key);
  if (task.steps > 0)
    for (const char* key : {"run.steps", "lr.steps"}) add(key);
  for (const Settings* settings : {&spec_.set, &task.trial.settings})
    for (const auto& [key, value] : *settings) add(key);
  std::string text;
  for (const auto& [section, keys] : sections) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    for (const auto& [key, value] : keys) text += fmt::format("{} = {}\n", key, value);
  }
  atomic_replace(paths_.overrides(task.trial.number), text);
}

void StudyRun::watch(UnderWay& trial) {
  const double limit = spec_.launch.time_limit;
  if (trial.told_to_stop > 0) {
    const double grace = trial.timed_out ? kLimitGraceSeconds : kGraceSeconds;
    if (now() > trial.told_to_stop + grace) trial.child.kill_all();
    return;
  }
  if (limit > 0 && now() > trial.started + limit) {
    trial.timed_out = true;
    trial.why_stopped = fmt::format("it did not end within {:g} s (launch.time_limit)", limit);
  } else if (trial.follower) {
    trial.why_stopped = trial.follower->look();
  }
  if (trial.why_stopped.empty()) return;
  trial.told_to_stop = now();
  trial.child.signal(trial.timed_out ? SIGTERM : signal_number(spec_.launch.stop_signal));
}

bool StudyRun::cut_short(const UnderWay& trial, int code) const {
  if (trial.told_to_stop > 0) return false;
  if (code == static_cast<int>(Exit::preempted)) return true;
  const bool whole = finished_steps(paths_.run(trial.task.trial.number)) == trial.config.run.steps;
  // mpirun may even say 0.
  return options_.several_nodes && !whole && (code == 0 || code == kLostNode);
}

void StudyRun::finish(UnderWay& trial, int code) {
  const int number = trial.task.trial.number;
  kill_marked(mark_of(paths_.trial(number)));
  if (cut_short(trial, code)) {
    cut_short_ = true;
    log::info("trial {} was cut short: it goes on in another launch (exit code {})", number, code);
    return;
  }
  StoredTrial ended = outcome(trial.task, trial.config, code);
  TrialRecord& record = ended.record;
  if (record.state != TrialState::done && trial.timed_out) {
    record.state = TrialState::timed_out;
    record.error = trial.why_stopped;
  } else if (record.state == TrialState::failed && !trial.why_stopped.empty()) {
    record.state = TrialState::stopped;
    record.error = trial.why_stopped;
  }
  record.figures["trial_s"] = now() - trial.started;
  end(ended, now() - trial.started);
}

StoredTrial StudyRun::outcome(const TrialTask& task, const RunConfig& config, int code) {
  const int number = task.trial.number;
  StoredTrial trial;
  if (const auto found = folder_.trials().find(number); found != folder_.trials().end())
    trial.rungs = found->second.rungs;
  TrialRecord& record = trial.record;
  record.number = number;
  record.settings = task.trial.settings;
  record.directory = paths_.run(number);
  harvest(record);
  record.facts["config_sha256"] = config_digest(config);
  const bool whole = finished_steps(record.directory) == config.run.steps;
  record.state = code == 0 && whole ? TrialState::done : TrialState::failed;
  if (record.state == TrialState::failed) {
    record.error = error_in_log(paths_.log(number));
    const std::string end = code == 0 ? "the launcher ended with 0, but the run is not finished"
                                      : fmt::format("exit code {}", code);
    record.error = record.error.empty() ? end : fmt::format("{} ({})", record.error, end);
  } else if (task.steps > 0) {
    add_metric(trial, task.steps);
    const std::int64_t last = config_of(spec_, task.trial.settings).run.steps;
    if (record.state == TrialState::done && task.steps < last) record.state = TrialState::stopped;
  }
  return trial;
}

void StudyRun::add_metric(StoredTrial& trial, std::int64_t steps) {
  const Cell metric = cell_of(trial.record, spec_.search.metric);
  if (const auto* value = std::get_if<double>(&metric)) {
    trial.rungs.push_back({steps, *value});
    return;
  }
  trial.record.state = TrialState::failed;
  trial.record.error =
      fmt::format("its result has no number {} (search.metric)", spec_.search.metric);
}

void StudyRun::refused(const TrialTask& task, const std::string& error) {
  StoredTrial trial;
  trial.record.number = task.trial.number;
  trial.record.settings = task.trial.settings;
  trial.record.state = TrialState::failed;
  trial.record.error = error;
  end(trial, 0);
}

void StudyRun::end(const StoredTrial& trial, double seconds) {
  folder_.save(trial);
  sampler_->tell(trial);
  progress_.ended(trial.record, seconds);
}

void StudyRun::stop_all() {
  progress_.clear();
  for (const UnderWay& trial : running_)
    trial.child.signal(signal_number(spec_.launch.stop_signal));
  const double told = now();
  while (!running_.empty() && now() < told + options_.grace) {
    running_.remove_if([](UnderWay& trial) { return trial.child.exit_code().has_value(); });
    usleep(50'000);
  }
  running_.clear();  // kills what is left
}

StudySummary StudyRun::summary(bool interrupted) const {
  StudySummary summary;
  summary.interrupted = interrupted;
  summary.elsewhere = elsewhere_;
  const std::string& metric = spec_.search.metric;
  double best = 0;
  for (const auto& [number, trial] : folder_.trials()) {
    const TrialState state = trial.record.state;
    summary.done += state == TrialState::done;
    summary.failed += state == TrialState::failed;
    summary.timed_out += state == TrialState::timed_out;
    summary.stopped += state == TrialState::stopped;
    const Cell cell = cell_of(trial.record, metric);
    const auto* value = std::get_if<double>(&cell);
    if (state != TrialState::done || value == nullptr || std::isnan(*value)) continue;
    if (!summary.best || (spec_.search.minimise ? *value < best : *value > best)) {
      summary.best = trial.record;
      best = *value;
    }
  }
  return summary;
}

std::string launch_line(const StudySpec& spec, const StudyPaths& paths, const Trial& trial,
                        const std::string& program) {
  std::vector<std::string> args = {"train"};
  for (const std::string& base : paths.base_files) args.push_back("@" + base);
  args.push_back("@" + paths.overrides(trial.number));
  const int ranks = ranks_of(spec, trial.settings, config_of(spec, trial.settings));
  std::string line;
  for (const std::string& word : launch_words(template_of(spec), ranks, program, args))
    line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace concertina
