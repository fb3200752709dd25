#include "experiments/study/trial_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/record/run_history.h"
#include "experiments/study/trial_launch.h"
#include "io/metrics.h"
#include "io/run_files.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostRungSteps = 1LL << 40;
constexpr double kMostNumber = std::numeric_limits<double>::max();

/// The metrics in a run's log.
std::vector<std::string> stop_metrics() {
  std::vector<std::string> names = {"validation_loss", "step"};
  for (const MetricNumber& number : metric_numbers({})) names.emplace_back(number.name);
  return names;
}

constexpr double kGraceSeconds = 30;       // for a checkpoint, after [stop] stops a trial
constexpr double kLimitGraceSeconds = 10;  // after its time limit
constexpr int kLostNode = 205;             // mpirun's exit code after losing a node (Open MPI 4)

int signal_number(const std::string& name) {
  return name == "TERM" ? SIGTERM : name == "INT" ? SIGINT : SIGUSR1;
}

std::uint64_t bytes_of(const std::string& path) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

/// Adds the metric of the rung that the trial has reached.
void add_rung(const StudySpec& spec, std::int64_t steps, TrialRecord& trial) {
  const Cell metric = cell_of(trial, spec.search.metric);
  if (const auto* value = std::get_if<double>(&metric)) {
    trial.rungs.push_back({steps, *value});
    return;
  }
  trial.state = TrialState::failed;
  trial.error = fmt::format("its result contains no metric {} (search.metric)", spec.search.metric);
}

}  // namespace

StopSection read_stop(const TomlSource& source, const toml::node& node) {
  StopSection stop;
  TomlTable table(source, node, "stop");
  table.take("metric", [&](const toml::node& value, const std::string& name) {
    const std::vector<std::string> metrics = stop_metrics();
    stop.metric =
        source.choice(value, name, std::vector<std::string_view>(metrics.begin(), metrics.end()));
  });
  table.take("above", [&](const toml::node& value, const std::string& name) {
    stop.above = source.number(value, name, -kMostNumber, kMostNumber);
    stop.has_above = true;
  });
  table.take("below", [&](const toml::node& value, const std::string& name) {
    stop.below = source.number(value, name, -kMostNumber, kMostNumber);
    stop.has_below = true;
  });
  table.whole("after", std::int64_t{0}, kMostRungSteps, stop.after);
  table.whole("patience", 1, 1 << 30, stop.patience);
  table.finish();
  if (stop.metric.empty() || (!stop.has_above && !stop.has_below && stop.patience == 0))
    table.refuse("[stop] has no condition", "metric = \"loss\" with above, below or patience");
  if (stop.has_above && stop.has_below && stop.above < stop.below)
    table.refuse(
        fmt::format("every value is above {} or below {}, so each trial would stop at once",
                    stop.above, stop.below),
        "above = the upper end of the acceptable range, below = the lower end");
  return stop;
}

std::string StopRule::see(std::int64_t step, double value) {
  best_.see(value);
  if (step < stop_.after) return {};
  const std::string now =
      fmt::format("{} is {} after step {}", stop_.metric, number_text(value), step);
  // NaN is neither above nor below, and not better than any value.
  if (std::isnan(value)) return now;
  if (stop_.has_above && value > stop_.above) return fmt::format("{}: above {}", now, stop_.above);
  if (stop_.has_below && value < stop_.below) return fmt::format("{}: below {}", now, stop_.below);
  if (stop_.patience > 0 && best_.no_better() >= stop_.patience)
    return fmt::format("{}: not better than {} for {}", now, number_text(best_.best()),
                       counted(best_.no_better(), "value"));
  return {};
}

RunFollower::RunFollower(const std::string& run, const StopSection& stop, bool minimise)
    : metric_(stop.metric == "validation_loss" ? "loss" : stop.metric),
      validation_(stop.metric == "validation_loss"),
      rule_(stop, minimise),
      lines_(run_file(run, validation_ ? kEventsFile : kMetricsFile)) {}

std::string RunFollower::look() {
  for (const nlohmann::json& json : lines_.look()) {
    if (!json.contains("step") || !json["step"].is_number()) continue;
    if (validation_ && !is_event(json, EventKind::validation)) continue;
    const auto found = json.find(metric_);
    if (found == json.end()) continue;
    const double value = found->is_number() ? found->get<double>() : std::nan("");
    if (std::string why = rule_.see(json["step"], value); !why.empty()) return why;
  }
  return {};
}

TrialProcess::TrialProcess(const StudySpec& spec, const StudyPaths& paths, TrialTask task,
                           RunConfig config, FileLock lock, const ChildOptions& child,
                           std::vector<int> cores)
    : spec_(spec),
      paths_(paths),
      task_(std::move(task)),
      config_(std::move(config)),
      lock_(std::move(lock)),
      log_begin_(bytes_of(child.log)),
      child_(child),
      cores_(std::move(cores)),
      started_(now()) {
  if (!spec_.stop.metric.empty())
    follower_.emplace(paths_.run(task_.trial.number), spec_.stop, spec_.search.minimise);
}

double TrialProcess::seconds() const {
  return now() - started_;
}

std::optional<int> TrialProcess::poll() {
  const std::optional<int> code = exit_code();
  if (!code) watch();
  return code;
}

std::optional<int> TrialProcess::exit_code() {
  const std::optional<int> code = child_.exit_code();
  if (code && stop_requested_ > 0 && child_.has_descendants()) return std::nullopt;
  return code;
}

void TrialProcess::watch() {
  const double limit = spec_.launch.time_limit;
  if (stop_requested_ > 0) {
    const double grace = timed_out_ ? kLimitGraceSeconds : kGraceSeconds;
    if (now() > stop_requested_ + grace) child_.kill_all();
    return;
  }
  if (launcher_hangs()) {
    hung_ = true;
    why_stopped_ = fmt::format(
        "the launcher did not exit within {:g} s after its ranks (launch.launcher_limit)",
        spec_.launch.launcher_limit);
    log::warn("trial {}: {}; stopping it", task_.trial.number, why_stopped_);
    stop_requested_ = now();
    child_.kill_all();
    return;
  }
  if (limit > 0 && now() > started_ + limit) {
    timed_out_ = true;
    why_stopped_ = fmt::format("it did not finish within {:g} s (launch.time_limit)", limit);
  } else if (follower_) {
    why_stopped_ = follower_->look();
  }
  if (why_stopped_.empty()) return;
  stop_requested_ = now();
  child_.signal(timed_out_ ? SIGTERM : signal_number(spec_.launch.stop_signal));
}

bool TrialProcess::launcher_hangs() {
  if (spec_.launch.launcher_limit == 0) return false;
  if (now() >= next_poll_) {  // adaptive interval, since this scans all processes
    if (child_.look().ranks > 0) ranks_at_ = now();
    next_poll_ = now() + std::min((now() - started_) / 10, spec_.launch.launcher_limit / 10);
  }
  // Ranks that were never seen are on other hosts.
  return ranks_at_ > 0 && now() > ranks_at_ + spec_.launch.launcher_limit;
}

void TrialProcess::request_stop() {
  if (stop_requested_ == 0) stop_requested_ = now();
  child_.signal(signal_number(spec_.launch.stop_signal));
}

bool TrialProcess::cut_short(int code, bool several_nodes) const {
  if (stop_requested_ > 0) return false;
  if (code == static_cast<int>(Exit::preempted)) return true;
  const bool whole = is_finished(paths_.run(task_.trial.number), config_);
  // mpirun may even return 0.
  return several_nodes && !whole && (code == 0 || code == kLostNode);
}

TrialRecord TrialProcess::record(int code, const TrialRecord* before) const {
  // The launcher's exit code does not tell how the run ended.
  TrialRecord record =
      trial_outcome(spec_, paths_, task_, config_, hung_ ? 0 : code, before, log_begin_);
  if (record.state == TrialState::failed && hung_) {
    const std::string logged = error_in_log(paths_.log(task_.trial.number), log_begin_);
    record.error = logged + (logged.empty() ? "" : "; ") + why_stopped_;
  } else if (record.state != TrialState::done && timed_out_) {
    record.state = TrialState::timed_out;
    record.error = why_stopped_;
  } else if (record.state == TrialState::failed && !why_stopped_.empty()) {
    record.state = TrialState::stopped;
    record.error = why_stopped_;
  }
  record.metrics["trial_s"] = seconds();
  return record;
}

TrialRecord trial_outcome(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                          const RunConfig& config, int code, const TrialRecord* before,
                          std::uint64_t log_begin) {
  const int number = task.trial.number;
  TrialRecord record;
  if (before != nullptr) record.rungs = before->rungs;
  record.number = number;
  record.settings = task.trial.settings;
  record.directory = paths.run(number);
  harvest(record);
  record.facts["config_sha256"] = launch_digest(config);
  const bool whole = is_finished(record.directory, config);
  record.state = code == 0 && whole ? TrialState::done : TrialState::failed;
  if (record.state == TrialState::failed) {
    record.error = error_in_log(paths.log(number), log_begin);
    const std::string end =
        code == 0 ? "the launcher exited with 0, but the run is not finished" : exit_text(code);
    if (record.error.empty())
      record.error = end;
    else if (code > 128)
      record.error += "; " + end;
    else
      record.error += fmt::format(" ({})", end);
  } else if (task.steps > 0) {
    add_rung(spec, task.steps, record);
    const std::int64_t last = config_of(spec, task.trial.settings).run.steps;
    if (record.state == TrialState::done && task.steps < last) record.state = TrialState::stopped;
  }
  return record;
}

}  // namespace concertina
