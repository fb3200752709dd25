// Runs the trials of a study concurrently within the available cores, each in a separate directory.
// Invariants: a finished trial has a record before the next one starts; a stopped or killed study
// continues where it ended; a trial that fails or hangs never stops the others; no core is given to
// two trials at once, and no trial gets a core that the study may not use.
#pragma once

#include <cstdio>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "experiments/machine/output.h"
#include "experiments/study/results.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/trial_process.h"

namespace concertina {

/// The cores available to concurrent trials.
class CoreBudget {
 public:
  /// `cores`: one logical CPU of each available core.
  explicit CoreBudget(std::vector<int> cores) : free_(cores), all_(std::move(cores)) {}

  int count() const { return static_cast<int>(all_.size()); }
  /// Returns `cores` cores, or all if there are fewer; nothing while they are in use.
  std::optional<std::vector<int>> take(int cores);
  void give_back(const std::vector<int>& cores);

 private:
  std::vector<int> free_, all_;  // ascending
};

/// Shows the progress of a study: a line for each finished trial and, on a terminal, a status line.
class StudyProgress {
 public:
  /// `metric`: the metric to show for each trial; empty: validation_loss or loss.
  StudyProgress(std::FILE* stream, std::string metric);

  void started(const TrialRecord& trial);
  /// `seconds`: duration of its launch.
  void ended(const TrialRecord& trial, double seconds);
  /// Redraws the status line at most twice a second. `left`: tasks that have not started.
  void update(int running, std::optional<int> left);
  void clear() { line_.clear(); }

 private:
  double seconds_left(int running, std::optional<int> left) const;

  StatusLine line_;
  std::string metric_;
  double last_draw_ = 0, began_;
  int ended_ = 0;  // in this launch
};

struct StudyRunOptions {
  std::string program;     // value of {program}
  std::vector<int> cores;  // available to trials; empty: trials run on any core, one at a time
  int trial = 0;           // number of the only trial to run; 0: all
  double grace = 30;       // seconds for checkpoints after the study was asked to stop
  /// The launcher may lose a node; a trial that seems affected stays open.
  bool several_nodes = false;
  /// A trial that was asked to stop is relaunched externally without limit, so it must fail if it
  /// makes no progress.
  bool requeued = false;
};

struct StudySummary {
  int done = 0, failed = 0, timed_out = 0, stopped = 0;
  bool interrupted = false;                  // by a signal, with trials remaining
  std::map<int, std::string> run_by_others;  // by trial: the other process that is running it
  std::optional<TrialRecord> best;
  std::string incomparable;  // why there is no best trial although trials have the metric
};

class StudyRun {
 public:
  StudyRun(const StudySpec& spec, StudyFolder& folder, StudyRunOptions options);

  /// Runs until all trials have finished or `stopped` returns a signal. Waits with `pause`, which
  /// returns early on a signal or when a child has exited.
  StudySummary run(const std::function<int()>& stopped, const std::function<void()>& pause);

 private:
  /// Starts what can start; returns false if nothing more can start now.
  bool start_next();
  std::optional<std::vector<int>> cores_for(const TrialTask& task);
  bool start(const TrialTask& task, std::vector<int> cores);
  /// Locks a trial; returns nothing if another process runs it or has since finished it.
  std::optional<FileLock> claim(int number);
  void finish(TrialProcess& trial, int code);
  /// Reopens a trial, or marks it as failed for lack of progress.
  void go_on_later(const TrialProcess& trial, int code);
  /// The trial's record; null if it has none.
  const TrialRecord* stored(int number) const;
  void refused(const TrialTask& task, const std::string& error);
  void end(const TrialRecord& trial, double seconds);
  /// Warns once if a trial was trained on a different text than earlier ones although its settings
  /// do not change the data.
  void compare_text(const TrialRecord& trial);
  void stop_all();
  StudySummary summary(bool interrupted);

  const StudySpec& spec_;
  StudyFolder& folder_;
  const StudyPaths& paths_;
  const StudyRunOptions options_;
  std::unique_ptr<Sampler> sampler_;
  CoreBudget budget_;
  StudyProgress progress_;
  std::list<TrialProcess> running_;
  std::optional<TrialTask> waiting_;  // for cores
  std::map<int, std::string> run_by_others_;
  bool cut_short_ = false;   // some trial was interrupted
  bool other_text_ = false;  // the warning was printed
};

}  // namespace concertina
