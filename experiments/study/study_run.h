// Runs the trials of a study: side by side within the cores that it may use, each in a directory of
// its own, whatever happens to the others.
// Invariants: a trial that has ended has a record before the next one starts; a study that is
// stopped or killed goes on where it was; a trial that fails or hangs never stops the rest; no core
// is given to two trials at a time, and none that the study may not use.
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

/// The cores that trials side by side have.
class CoreBudget {
 public:
  /// `cores`: one logical CPU of each core that there is to give.
  explicit CoreBudget(std::vector<int> cores) : free_(cores), all_(std::move(cores)) {}

  int count() const { return static_cast<int>(all_.size()); }
  /// So many cores, or all where there are fewer; nothing while they are not free.
  std::optional<std::vector<int>> take(int cores);
  void give_back(const std::vector<int>& cores);

 private:
  std::vector<int> free_, all_;  // ascending
};

/// Shows a person how a study goes on: a line for each trial that ends, and on a terminal
/// a line at the bottom with what is left.
class StudyProgress {
 public:
  /// `metric`: a figure to show of each trial; empty: validation_loss or loss.
  StudyProgress(std::FILE* stream, std::string metric);

  void started(const TrialRecord& trial);
  /// `seconds`: of its launch.
  void ended(const TrialRecord& trial, double seconds);
  /// Redraws the bottom line, at most twice a second. `left`: tasks that have not started.
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
  std::string program;     // what {program} stands for
  std::vector<int> cores;  // that it may give to trials; empty: trials run on any, one at a time
  int trial = 0;           // this one alone; 0: all
  double grace = 30;       // seconds for checkpoints, once the study was told to stop
  /// The launcher may lose a node: where it seems so, the trial stays open.
  bool several_nodes = false;
  /// A trial that was told to stop is launched again by others, without end: what gets nowhere is
  /// to fail.
  bool requeued = false;
};

struct StudySummary {
  int done = 0, failed = 0, timed_out = 0, stopped = 0;
  bool interrupted = false;              // by a signal: trials are left
  std::map<int, std::string> elsewhere;  // trials that other processes run, and which
  std::optional<TrialRecord> best;
  std::string unlike;  // why there is no best though trials have the metric
};

class StudyRun {
 public:
  StudyRun(const StudySpec& spec, StudyFolder& folder, StudyRunOptions options);

  /// Until all trials have ended, or `stopped` returns a signal. Waits with `pause`, which returns
  /// early when a child has ended or a signal has come.
  StudySummary run(const std::function<int()>& stopped, const std::function<void()>& pause);

 private:
  /// Starts what can start; false if nothing more can for now.
  bool start_next();
  std::optional<std::vector<int>> cores_for(const TrialTask& task);
  bool start(const TrialTask& task, std::vector<int> cores);
  /// Locks a trial; nothing if another process runs the trial, or has ended it since this one
  /// looked.
  std::optional<FileLock> claim(int number);
  void finish(TrialProcess& trial, int code);
  /// A trial is open again, or has failed for getting nowhere.
  void go_on_later(const TrialProcess& trial, int code);
  /// The trial's record; null if it has none.
  const TrialRecord* stored(int number) const;
  void refused(const TrialTask& task, const std::string& error);
  void end(const TrialRecord& trial, double seconds);
  /// Says it, once, if the trial had another text than one before, though none was asked for.
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
  std::map<int, std::string> elsewhere_;
  bool cut_short_ = false;   // some trial was
  bool other_text_ = false;  // it was said
};

}  // namespace concertina
