#include "experiments/supervise/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/signals.h"
#include "experiments/record/run_history.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/snapshot_file.h"

namespace concertina {
namespace {

constexpr double kPollSeconds = 0.02;
/// A launcher has so long to return once its ranks have ended, which are looked for so often.
constexpr double kLauncherSeconds = 0.6, kRanksSeconds = 0.2;
/// One whose ranks were ended by us may do nothing for a second, and what it leaves is known.
constexpr double kClearSeconds = 0.2;
/// A launch that was told to stop commits a checkpoint, which takes as long as storage takes.
constexpr double kStopSeconds = 600;
constexpr int kMostInVain = 5;
constexpr double kLongestPause = 30;

void sleep_briefly() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kPollSeconds));
}

std::string how_it_ended(int code) {
  if (code > 128 && code < 128 + 65)
    return fmt::format("the launcher was ended by signal {} (exit code {})", code - 128, code);
  if (code == 0) return "the launcher returned 0, but the run is not finished";
  return fmt::format("the launcher returned {}", code);
}

}  // namespace

Supervisor::Supervisor(SuperviseOptions options, const RunConfig& config)
    : options_(std::move(options)),
      config_(config),
      directory_(std::filesystem::absolute(run_directory(config)).lexically_normal().string()),
      checkpoints_(checkpoint_directory(config)) {}

ChildOptions Supervisor::child() const {
  std::vector<std::string> args = options_.args;
  // A launch that was lost before its first checkpoint has left logs alone.
  if (launched_ && newest_state() == 0 && read_history(directory_).steps > 0)
    args.emplace_back("--from-scratch");
  std::map<std::string, std::string> environment = launch_environment();
  environment.insert_or_assign(kSupervisedVariable, directory_);
  return {.process = {.words = launch_words(options_.launcher, options_.ranks, options_.program,
                                            args, "--launcher"),
                      .environment = std::move(environment),
                      .in = STDIN_FILENO,
                      .out = STDOUT_FILENO},
          .log = {},
          .mark = directory_,
          .program = options_.program};
}

std::int64_t Supervisor::newest_state() const {
  recover_commits(checkpoints_);
  const std::optional<Commit> commit = newest_commit(checkpoints_);
  const std::optional<OpenCommit> snapshot = open_newest_snapshot(snapshot_prefix(directory_));
  return std::max(commit ? commit->step : 0, snapshot ? snapshot->manifest.step : 0);
}

void Supervisor::tell_to_stop(const ChildProcess& child) {
  // Open MPI and srun pass USR1 on, and wait; on TERM they give the ranks a second.
  child.signal(SIGUSR1);
  told_at_ = now();
}

/// The ranks first: then a launcher has nothing to wait for, and removes what it has left in the
/// file system.
void Supervisor::end_all(ChildProcess& child) {
  child.kill_program();
  for (const double end = now() + kClearSeconds; now() < end && !child.exit_code();)
    sleep_briefly();
  child.kill_all();
}

Supervisor::End Supervisor::watch(ChildProcess& child) {
  FaultFollower faults(run_file(directory_, kFaultsFile));
  double ranks_at = 0, look_at = now() + kRanksSeconds;
  for (;; sleep_briefly()) {
    const std::optional<int> code = child.exit_code();
    if (const std::optional<Fault> fault = faults.look()) {
      const double seen = now();
      end_all(child);
      return {code.value_or(1), fault->kind, fault->what, seen};
    }
    if (code) {
      const double seen = now();
      end_all(child);
      return {*code, "ended", how_it_ended(*code), seen};
    }
    if (stopped_by_ == 0 && (stopped_by_ = stop_signal()) != 0) tell_to_stop(child);
    if (stopped_by_ != 0 && now() > told_at_ + kStopSeconds) {
      end_all(child);
      return {1, "ended", fmt::format("no end {:g} s after it was told to stop", kStopSeconds),
              now()};
    }
    if (now() < look_at) continue;
    look_at = now() + kRanksSeconds;
    if (child.has_program()) ranks_at = now();
    if (ranks_at == 0 || now() < ranks_at + kLauncherSeconds) continue;
    const double seen = now();
    end_all(child);
    return {1, "launcher", "all ranks on this host have ended, and the launcher did not return",
            seen};
  }
}

/// The launch refused its newest checkpoint: if that is damaged, and an older one is not, it is put
/// aside under another name.
bool Supervisor::put_damaged_aside() const {
  const std::vector<Commit> commits = list_commits(checkpoints_);
  if (commits.size() < 2) return false;
  const std::string& newest = commits.back().path;
  const std::vector<std::string> problems = verify(newest);
  if (problems.empty() || !verify(commits[commits.size() - 2].path).empty()) return false;
  std::string aside = newest + ".damaged";
  for (int number = 1; std::filesystem::exists(aside); ++number)
    aside = fmt::format("{}.damaged.{}", newest, number);
  rename_path(newest, aside);
  log::warn("{}; it is {} now", problems[0], aside);
  return true;
}

bool Supervisor::goes_on(const End& end) {
  const bool refused = end.code == static_cast<int>(Exit::bad_input) && end.kind == "ended";
  const bool older = refused && put_damaged_aside();
  const std::int64_t newest = newest_state();
  in_vain_ = newest > newest_ || older ? 0 : in_vain_ + 1;
  newest_ = newest;
  if (refused && !older) {
    summary_.code = end.code;
    summary_.why = "the launch was refused: the same command would be refused again";
  } else if (options_.max_restarts && summary_.restarts >= *options_.max_restarts) {
    summary_.code = static_cast<int>(Exit::failure);
    summary_.why = fmt::format("no more restarts than {} (--max-restarts)", *options_.max_restarts);
  } else if (in_vain_ >= kMostInVain) {
    summary_.code = static_cast<int>(Exit::failure);
    summary_.why = fmt::format("{} in a row ended before a new checkpoint (checkpoint.every = {})",
                               counted(in_vain_, "launch"), config_.checkpoint.every);
  }
  return summary_.why.empty();
}

/// Nothing after a launch that got on; else twice as long from one launch to the next.
double Supervisor::pause() const {
  return in_vain_ == 0 ? 0 : std::min(kLongestPause, 0.25 * std::exp2(in_vain_ - 1));
}

SuperviseSummary Supervisor::run() {
  const double began = now();
  if (const int left = kill_marked(directory_); left > 0)
    log::warn("{} of an earlier launch of this run had to be ended", counted(left, "process"));
  newest_ = newest_state();
  for (double down_since = 0;;) {
    End end;
    {
      ChildProcess process(child());
      if (down_since > 0) summary_.down_seconds += now() - down_since;
      end = watch(process);
    }
    launched_ = true;
    if (is_finished(directory_, config_)) break;
    if (stopped_by_ != 0) {
      summary_.code = static_cast<int>(Exit::preempted);
      summary_.why = fmt::format("stopped by signal {}; the same command goes on", stopped_by_);
      break;
    }
    const std::int64_t reached = read_history(directory_).steps;
    const bool again = goes_on(end);
    if (!again) {
      if (!end.why.empty() && summary_.code != static_cast<int>(Exit::bad_input))
        summary_.why = fmt::format("{}; the last one: {}", summary_.why, end.why);
      break;
    }
    const Restart restart{.launch = summary_.restarts + 1,
                          .ranks = options_.ranks,
                          .why = end.why,
                          .kind = end.kind,
                          .reached = std::max(reached, newest_),
                          .from = newest_,
                          .ended_s = now() - end.fault_at,
                          .waited_s = pause()};
    append_restart(run_file(directory_, kRestartsFile), restart);
    ++summary_.restarts;
    summary_.steps_repeated += restart.reached - restart.from;
    log::warn("launch {}: {}; goes on after step {}{}", restart.launch, restart.why, restart.from,
              restart.waited_s > 0 ? fmt::format(" in {:g} s", restart.waited_s) : "");
    down_since = end.fault_at;
    for (const double until = now() + restart.waited_s; now() < until && stopped_by_ == 0;
         stopped_by_ = stop_signal())
      sleep_briefly();
    if (stopped_by_ != 0) {
      summary_.code = static_cast<int>(Exit::preempted);
      summary_.why = fmt::format("stopped by signal {}; the same command goes on", stopped_by_);
      break;
    }
  }
  // After a failure somebody may mend what was wrong: then the newest state is still there.
  if (summary_.code == 0 || summary_.code == static_cast<int>(Exit::preempted))
    remove_snapshots(snapshot_prefix(directory_));
  summary_.seconds = now() - began;
  return summary_;
}

}  // namespace concertina
