// One trial under way: its launcher, what ends it before its time, and what came of it.
// Invariant: it holds the lock of its trial; with it ends every process that it started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/study/child_process.h"
#include "experiments/study/sampler.h"
#include "experiments/study/stop_rule.h"
#include "experiments/study/study_folder.h"

namespace concertina {

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
  StoredTrial record(int code, const StoredTrial* before) const;

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
StoredTrial trial_outcome(const StudySpec& spec, const StudyPaths& paths, const TrialTask& task,
                          const RunConfig& config, int code, const StoredTrial* before,
                          std::uint64_t log_begin = 0);

}  // namespace concertina
