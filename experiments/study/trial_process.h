// A running trial: its launcher, what stops it early, and its outcome. Invariants: holds the
// trial's lock; when destroyed, kills all processes that it started; [stop] never stops a trial
// before step `after`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/launcher/child_process.h"
#include "experiments/record/best_metric.h"
#include "experiments/record/run_lines.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/study_spec.h"
#include "io/toml_reader.h"

namespace concertina {

/// Reads the [stop] section of a study's file. Throws Error{bad_input} naming the location.
StopSection read_stop(const TomlSource& source, const toml::node& node);

/// Decides when a running trial is stopped because of its metrics.
class StopRule {
 public:
  /// `minimise`: whether smaller values are better, for patience.
  StopRule(const StopSection& stop, bool minimise) : stop_(stop), best_(minimise) {}

  /// Processes the metric's value after `step` steps. Returns why the trial should stop, if at all.
  std::string see(std::int64_t step, double value);

 private:
  const StopSection& stop_;
  BestMetric best_;
};

/// Follows the log lines of a run while they are written and applies a rule to them.
class RunFollower {
 public:
  /// `run`: its directory, which may not exist yet.
  RunFollower(const std::string& run, const StopSection& stop, bool minimise);
  /// Reads new lines and returns the same as StopRule::see().
  std::string look();

 private:
  std::string metric_;
  bool validation_;
  StopRule rule_;
  LineFollower lines_;
};

class TrialProcess {
 public:
  /// Starts the trial on `cores` of the study's budget.
  TrialProcess(const StudySpec& spec, const StudyPaths& paths, TrialTask task, RunConfig config,
               FileLock lock, const ChildOptions& child, std::vector<int> cores);

  const TrialTask& task() const { return task_; }
  const std::vector<int>& cores() const { return cores_; }
  double seconds() const;

  /// Returns the launcher's exit code once it has exited. Until then checks the trial's time limit
  /// and metrics, and asks it to stop or kills it.
  std::optional<int> poll();
  /// Returns the exit code once the launch has ended. If the trial was asked to stop, waits for all
  /// its processes, since the signal that asks ranks for a checkpoint may kill the launcher.
  std::optional<int> exit_code();
  /// Asks the trial to write a checkpoint and exit.
  void request_stop();
  /// Kills remaining processes with SIGKILL.
  void end_rest() { child_.kill_all(); }

  /// Whether the trial exited without being asked to and can resume: after a signal to the ranks,
  /// or after the loss of one of several nodes.
  bool cut_short(int code, bool several_nodes) const;
  /// The record of the trial after its launch exited with `code`.
  TrialRecord record(int code, const TrialRecord* before) const;

 private:
  void watch();
  /// Whether the launcher is still running although its ranks, seen on this host, have exited.
  bool launcher_hangs();

  const StudySpec& spec_;
  const StudyPaths& paths_;
  TrialTask task_;
  RunConfig config_;
  FileLock lock_;
  std::uint64_t log_begin_;
  ChildProcess child_;
  std::vector<int> cores_;
  double started_, stop_requested_ = 0;  // 0: not asked to stop
  double next_poll_ = 0, ranks_at_ = 0;  // when ranks were last seen; 0: never
  std::string why_stopped_;              // because of [stop] or a limit
  bool timed_out_ = false, hung_ = false;
  std::optional<RunFollower> follower_;
};

/// The record of a trial whose launch exited with `code` or that had already finished. `before`:
/// its previous record or null; `log_begin`: size of the log before the launch.
TrialRecord trial_outcome(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                          const RunConfig& config, int code, const TrialRecord* before,
                          std::uint64_t log_begin = 0);

}  // namespace concertina
