// One trial under way: its launcher, what ends it before its time, and what came of it.
// Invariants: it holds the lock of its trial; with it ends every process that it started; [stop]
// never ends a trial before its `after` steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/launcher/child_process.h"
#include "experiments/record/best_figure.h"
#include "experiments/record/run_lines.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/study_spec.h"
#include "io/toml_reader.h"

namespace concertina {

/// The [stop] of a study's file. Throws Error{bad_input} with the place of what is wrong.
StopSection read_stop(const TomlSource& source, const toml::node& node);

/// When a trial under way is ended for its figures.
class StopRule {
 public:
  /// `minimise`: whether smaller values are better, for patience.
  StopRule(const StopSection& stop, bool minimise) : stop_(stop), best_(minimise) {}

  /// Takes the metric's value after `step` steps. Returns why the trial should end; empty: it
  /// should go on.
  std::string see(std::int64_t step, double value);

 private:
  const StopSection& stop_;
  BestFigure best_;
};

/// Follows the log lines of a run while they are written, and gives them to a rule.
class RunFollower {
 public:
  /// `run`: its directory, which may not be there yet.
  RunFollower(const std::string& run, const StopSection& stop, bool minimise);
  /// Reads what is new. Returns why the trial should end; empty: it should go on.
  std::string look();

 private:
  std::string metric_;
  bool validation_;
  StopRule rule_;
  LineFollower lines_;
};

class TrialProcess {
 public:
  /// Starts it on `cores` of the study's budget.
  TrialProcess(const StudySpec& spec, const StudyPaths& paths, TrialTask task, RunConfig config,
               FileLock lock, const ChildOptions& child, std::vector<int> cores);

  const TrialTask& task() const { return task_; }
  const std::vector<int>& cores() const { return cores_; }
  double seconds() const;

  /// The launcher's exit code once the launch has ended. Until then looks whether the trial is to
  /// end, for its time or its figures, and tells it so, or ends it.
  std::optional<int> poll();
  /// The exit code once the launch has ended: of one that was told to stop, all its processes, as a
  /// launcher may die of the signal that asks its ranks for a checkpoint.
  std::optional<int> exit_code();
  /// Asks for a checkpoint and its end.
  void tell_to_stop();
  /// SIGKILL to what it left.
  void end_rest() { child_.kill_all(); }

  /// Whether it ended though nobody told it to, and can go on: by a signal to the ranks, or the
  /// loss of a node where there are several.
  bool cut_short(int code, bool several_nodes) const;
  /// The record of the trial, whose launch has ended with `code`.
  TrialRecord record(int code, const TrialRecord* before) const;

 private:
  void watch();
  /// Whether the launcher goes on though its ranks, which were seen on this host, have ended.
  bool launcher_hangs();

  const StudySpec& spec_;
  const StudyPaths& paths_;
  TrialTask task_;
  RunConfig config_;
  FileLock lock_;
  std::uint64_t log_begin_;
  ChildProcess child_;
  std::vector<int> cores_;
  double started_, told_to_stop_ = 0;    // 0: it was not told
  double next_look_ = 0, ranks_at_ = 0;  // when ranks were seen last; 0: never
  std::string why_stopped_;              // by [stop], or a limit
  bool timed_out_ = false, hung_ = false;
  std::optional<RunFollower> follower_;
};

/// The record of a trial whose launch has ended with `code`, or that had ended before; `before`:
/// its record until now, null if it has none; `log_begin`: bytes that the log had before the
/// launch.
TrialRecord trial_outcome(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                          const RunConfig& config, int code, const TrialRecord* before,
                          std::uint64_t log_begin = 0);

}  // namespace concertina
