#include "experiments/supervise/supervisor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/signals.h"
#include "experiments/record/run_history.h"
#include "experiments/record/run_lines.h"
#include "experiments/supervise/host_pool.h"
#include "experiments/supervise/launch_judges.h"
#include "experiments/supervise/layout_for.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "io/checkpoint/run_directory.h"
#include "io/checkpoint/snapshot_file.h"
#include "io/file.h"
#include "io/file_lock.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr double kPollSeconds = 0.05;
/// Interval between checks of a launch's processes.
constexpr double kRanksSeconds = 0.2;
/// Time for a launcher to clean up. It may do nothing for a second, but its leftovers are known.
constexpr double kClearSeconds = 0.2;
/// A stopped launch commits a checkpoint, which takes as long as the storage needs.
constexpr double kStopSeconds = 600;
/// Time after a fault for a launch to report that it continues by itself before it is killed.
constexpr double kInPlaceSeconds = 5;
constexpr int kMostQuestions = 5;

void sleep_briefly() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kPollSeconds));
}

std::string how_it_ended(int code) {
  if (code > 128 && code < 128 + 65)
    return fmt::format("the launcher was killed by signal {} (exit code {})", code - 128, code);
  if (code == 0) return "the launcher returned 0, but the run is not finished";
  return fmt::format("the launcher returned {}", code);
}

/// Kills the ranks first: the launcher then has nothing to wait for and cleans up its files.
void end_all(ChildProcess& child) {
  child.kill_program();
  for (const double end = now() + kClearSeconds; now() < end && !child.exit_code();)
    sleep_briefly();
  child.kill_all();
}

/// Renames the newest checkpoint if `why` names it as the reason for a refused launch, it is
/// damaged, and the one before it is intact.
bool put_damaged_aside(const std::string& checkpoints, const std::string& why) {
  const std::vector<Commit> commits = list_commits(checkpoints);
  if (commits.size() < 2 || why.find(commit_name(commits.back().step)) == why.npos) return false;
  const std::string& newest = commits.back().path;
  const std::vector<std::string> problems = verify(newest);
  if (problems.empty() || !verify(commits[commits.size() - 2].path).empty()) return false;
  std::string aside = newest + ".damaged";
  for (int number = 1; fs::exists(aside); ++number)
    aside = fmt::format("{}.damaged.{}", newest, number);
  rename_path(newest, aside);
  log::warn("{}; renamed it to {}", problems[0], aside);
  return true;
}

/// Removes this host's snapshots of a former run in the same directory.
void forget_former_runs(const std::string& directory) {
  for (const auto& [prefix, set] : own_snapshot_sets())
    if (set.directory == directory && prefix != snapshot_prefix(directory))
      remove_snapshots(prefix);
}

class Supervisor {
 public:
  /// The pool queries hosts through the same launcher that starts their ranks. `task`: an option of
  /// `run --here` (run.cc).
  explicit Supervisor(const SupervisedTraining& training)
      : training_(training),
        config_(training.config),
        directory_(fs::absolute(run_directory(config_)).lexically_normal().string()),
        checkpoints_(checkpoint_directory(config_)),
        pool_(training.hosts,
              [this](std::vector<Host> hosts, const char* task) {
                std::vector<std::string> args{"run", "--here", directory_};
                if (*task != 0) args.emplace_back(task);
                for (Host& host : hosts) host.slots = 1;
                ProcessOptions question = launch(slots_of(hosts), args, hosts_text(hosts));
                question.terminate_with_parent = true;
                return question;
              }),
        ranks_(training.ranks) {}
  Supervisor(const Supervisor&) = delete;  // pool_ refers to this object
  Supervisor& operator=(const Supervisor&) = delete;

  SuperviseSummary run() {
    const double began = now();
    RunDirectory::require_usable(config_.run.dir, config_.run.name);
    make_directories(directory_);
    const std::string lock_path = run_file(directory_, kSupervisorLock);
    launched_ = fs::exists(lock_path);  // possibly by a `concertina run` that was killed
    {
      const FileLock lock(lock_path, "this run",
                          "wait until that `concertina run` has finished, or stop it");
      if (const int left = kill_marked(directory_); left > 0)
        log::warn("killed {} leftover processes from an earlier launch of this run", left);
      forget_former_runs(directory_);
      policy_.emplace(training_.max_restarts, config_.checkpoint.every, newest_state());
      launches_before_ = launch_bytes();
      run_launches();
    }
    forget_snapshots();
    if (!RunDirectory::exists(config_.run.dir,
                              config_.run.name)) {  // refused: remove all traces
      std::error_code ignored;
      for (const std::string& path : {lock_path, run_file(directory_, kFaultsFile), directory_})
        fs::remove(path, ignored);
    }
    summary_.seconds = now() - began;
    return summary_;
  }

 private:
  /// The judges of a launch, and the faults that it has reported.
  struct Watched {
    std::uintmax_t launches = 0;  // launch_bytes() before
    double next_poll = 0;
    Verdict open{};  // a fault after which the launch may still continue by itself
    Absence absence{};
    StoppedRanks stopped{};
    Launching launching;
  };

  void run_launches() {
    double down_since = 0;
    while (muster()) {
      std::optional<ChildProcess> process(child());
      if (down_since > 0) summary_.down_seconds += now() - down_since;
      const LaunchEnd end = watch(*process);
      process.reset();
      launched_ = true;
      if (is_finished(directory_, config_, /*or_longer=*/true) || stopped() || !should_restart(end))
        return;
      wait(record(end, /*in_place=*/false));
      if (stopped()) return;
      down_since = end.fault_at;
    }
  }

  /// The hosts that respond; retries if none does, since that may be temporary.
  std::vector<Host> hosts_there() {
    for (int attempt = 1;; ++attempt) {
      for (const std::string& host : pool_.ask()) {
        const std::string what =
            fmt::format("host {} does not respond and is not used until it does", host);
        log::warn("{}", what);
        append_fault(directory_, {.kind = FaultKind::lost, .host = host, .what = what});
      }
      std::vector<Host> there = pool_.for_ranks(training_.ranks);
      if (!there.empty() || attempt == kMostQuestions || stopped()) return there;
      wait(std::exp2(attempt));
    }
  }

  /// Selects the hosts and ranks for the next launch. Returns false, with a reason in the summary,
  /// if the run does not fit on the hosts.
  bool muster() {
    if (pool_.empty()) return true;
    const std::vector<Host> there = hosts_there();
    if (stopped()) return false;
    const int slots = slots_of(there);
    const std::optional<FittingLayout> layout =
        slots < training_.ranks ? layout_for(config_, slots) : FittingLayout{slots};
    if (!layout) {
      summary_.code = static_cast<int>(Exit::failure);
      summary_.why = there.empty()
                         ? "no host responds"
                         : fmt::format("the run cannot use any number of ranks up to {}", slots);
      return false;
    }
    ranks_ = layout->ranks;
    fit_ = layout->arguments;
    hosts_ = hosts_text(first_slots(there, ranks_));
    if (ranks_ < training_.ranks)
      log::warn("{} instead of {}, on {}{}", counted(ranks_, "rank"), training_.ranks, hosts_,
                fit_.empty() ? "" : ": " + shell_line(fit_));
    return true;
  }

  ProcessOptions launch(int ranks, const std::vector<std::string>& args,
                        const std::string& hosts) const {
    return {.words = launch_words(training_.launcher, ranks, training_.program, args, "--launcher",
                                  hosts),
            .environment = launch_environment()};
  }

  ChildOptions child() const {
    std::vector<std::string> args = training_.args;
    if (launched_) std::erase(args, "--from-scratch");  // applies to the first launch only
    args.insert(args.end(), fit_.begin(), fit_.end());
    ProcessOptions process = launch(ranks_, args, hosts_);
    process.environment.insert_or_assign(kSupervisedVariable, directory_);
    process.out = STDOUT_FILENO;
    return {.process = process, .log = {}, .mark = directory_, .program = training_.program};
  }

  LaunchEnd watch(ChildProcess& child) {
    LineFollower faults(run_file(directory_, kFaultsFile));
    faults.skip();
    Watched launch{.launches = launch_bytes(), .launching = Launching(now())};
    for (;; sleep_briefly()) {
      const std::optional<int> code = child.exit_code();
      Verdict end = judge_lines(faults.look(), launch);
      if (code && !end)
        end = launch.open ? launch.open : LaunchEnd{FaultKind::ended, how_it_ended(*code), now()};
      if (!end) end = judge_stop(child);
      if (!end) end = judge_processes(child, launch);
      if (!end) continue;
      end_all(child);
      end->code = code.value_or(1);
      return *end;
    }
  }

  /// The end that the launch's `lines` report, if any.
  Verdict judge_lines(const std::vector<nlohmann::json>& lines, Watched& launch) {
    Verdict& open = launch.open;
    for (const nlohmann::json& line : lines) {
      if (const std::optional<LaunchFault> fault = fault_in(line)) {
        // A rank may fail because another one died, and report its failure first.
        if (!open || open->kind == FaultKind::failed)
          open = LaunchEnd{fault->kind, fault->what, now()};
        if (!fault->in_place.value_or(false) && !ends_itself(fault->kind)) return open;
      } else if (open && is_in_place_report(line)) {
        record(*open, /*in_place=*/true);
        open.reset();
        launch.absence.lose();
      }
    }
    return open && now() > open->fault_at + kInPlaceSeconds ? open : std::nullopt;
  }

  Verdict judge_stop(const ChildProcess& child) {
    if (summary_.stopped_by == 0 && (summary_.stopped_by = stop_signal()) != 0) {
      // Open MPI and srun forward USR1 and wait; after TERM they give the ranks only a second.
      child.signal(SIGUSR1);
      stop_time_ = now();
    }
    if (summary_.stopped_by == 0 || now() <= stop_time_ + kStopSeconds) return std::nullopt;
    return LaunchEnd{FaultKind::ended,
                     fmt::format("still running {:g} s after the request to stop", kStopSeconds),
                     now()};
  }

  /// Detects ends of the launch that this host's ranks cannot report, unless they have reported a
  /// fault that also ends it.
  Verdict judge_processes(ChildProcess& child, Watched& launch) {
    if (launch.open) launch.absence.excuse(now());
    if (now() < launch.next_poll) return std::nullopt;
    launch.next_poll = now() + kRanksSeconds;
    ProcessFacts facts = child.look();
    facts.begun = launch_bytes() != launch.launches;
    Verdict end = launch.absence.look(facts);
    if (!end && launch.launching.is_stopped(facts)) {
      log::warn("the launcher has been stopped by a signal; sending SIGCONT");
      child.signal(SIGCONT);
    }
    if (!end && !hosts_.empty() && launch.launching.asks_hosts(facts)) end = judge_hosts(facts.at);
    if (!end) end = launch.launching.look(facts);
    if (!end) end = launch.stopped.look(facts);
    return end && launch.open && ends_itself(launch.open->kind) ? launch.open : end;
  }

  /// Whether a host of a launch that has not begun fails to respond. A slow host is not a fault.
  Verdict judge_hosts(double at) {
    const std::vector<std::string> lost = pool_.ask("--look");  // stopped ranks report faults
    if (pool_.all_lost()) return std::nullopt;  // probably this host lost its network or storage
    for (const Host& host : parse_hosts(hosts_, "--hosts"))
      if (std::ranges::find(lost, host.name) != lost.end())
        return LaunchEnd{FaultKind::lost,
                         fmt::format("host {} did not respond before training started", host.name),
                         at};
    return std::nullopt;
  }

  /// Whether to start another launch after `end`; if not, the summary gives the reason.
  bool should_restart(const LaunchEnd& end) {
    const bool older = is_refused(end) && put_damaged_aside(checkpoints_, end.why);
    const auto stop = policy_->after({.end = end,
                                      .hosts = hosts_,
                                      .newest = newest_state(),
                                      .older = older,
                                      .any_begun = launch_bytes() != launches_before_});
    if (!stop) return true;
    summary_.code = static_cast<int>(stop->code);
    summary_.why = stop->why;
    if (stop->code != Exit::bad_input) summary_.why += "; last failure: " + end.why;
    return false;
  }

  /// Records that the run continues after a fault: with the same launch if `in_place`, otherwise
  /// with another one after the returned number of seconds.
  double record(const LaunchEnd& fault, bool in_place) {
    const std::int64_t from = newest_state();
    const Restart restart{.launch = summary_.restarts + 1,
                          .ranks = ranks_,
                          .hosts = hosts_,
                          .why = fault.why,
                          .kind = fault.kind,
                          .reached = std::max(read_history(directory_).steps, from),
                          .from = from,
                          .ended_s = now() - fault.fault_at,
                          .waited_s = in_place ? 0 : policy_->pause(),
                          .in_place = in_place};
    append_restart(run_file(directory_, kRestartsFile), restart);
    summary_.steps_repeated += restart.reached - from;
    ++(in_place ? summary_.in_place : summary_.restarts);
    log::warn("launch {}: {}; {} after step {}{}", restart.launch, restart.why,
              in_place ? "it continues by itself" : "resuming", from,
              restart.waited_s > 0 ? fmt::format(" in {:g} s", restart.waited_s) : "");
    return restart.waited_s;
  }

  /// Whether this process was asked to stop; the summary then says so.
  bool stopped() {
    if (summary_.stopped_by == 0) summary_.stopped_by = stop_signal();
    if (summary_.stopped_by == 0) return false;
    summary_.code = static_cast<int>(Exit::preempted);
    summary_.why = fmt::format("stopped by {}; rerun the same command to resume",
                               signal_text(summary_.stopped_by));
    return true;
  }

  void wait(double seconds) {
    for (const double until = now() + seconds; now() < until && !stopped();) sleep_briefly();
  }

  /// The size of launches.jsonl, to which a launch that has begun adds a line.
  std::uintmax_t launch_bytes() const {
    std::error_code none;
    const std::uintmax_t size = fs::file_size(run_file(directory_, kLaunchesFile), none);
    return none ? 0 : size;
  }

  /// The step from which the next launch resumes, as far as this host knows: that of the newest
  /// checkpoint or part of a snapshot.
  std::int64_t newest_state() const {
    recover_commits(checkpoints_);
    const std::optional<Commit> commit = newest_commit(checkpoints_);
    return std::max(commit ? commit->step : 0, newest_snapshot_part(snapshot_run(directory_)));
  }

  /// Removes snapshots on all hosts, since a host outside the last launch may have some. After a
  /// failure that a user may fix, keeps them if no checkpoint is as new.
  void forget_snapshots() {
    const std::string prefix = snapshot_prefix(directory_);
    const bool failed = summary_.code != 0 && summary_.code != static_cast<int>(Exit::preempted);
    const std::optional<Commit> commit = newest_commit(checkpoints_);
    const std::int64_t newest = failed ? newest_snapshot_part(snapshot_run(directory_)) : 0;
    if (newest > (commit ? commit->step : 0))
      return log::warn(
          "step {} is only in memory: rerun the same command to resume from it; `rm {}.*` frees "
          "the memory",
          newest, prefix);
    remove_snapshots(prefix);
    if (summary_.restarts > 0 && !pool_.empty()) pool_.ask("--forget");
  }

  const SupervisedTraining& training_;
  const RunConfig& config_;
  const std::string directory_, checkpoints_;
  HostPool pool_;
  std::string hosts_{};             // of the launch; empty: this host
  int ranks_ = 1;                   // of the launch
  std::vector<std::string> fit_{};  // arguments that make the config fit ranks_
  SuperviseSummary summary_{};
  std::optional<RestartPolicy> policy_{};
  double stop_time_ = 0;                // when the launch was asked to stop
  bool launched_ = false;               // at least once
  std::uintmax_t launches_before_ = 0;  // launch_bytes() before the first launch
};

}  // namespace

SuperviseSummary supervise(const SupervisedTraining& training) {
  return Supervisor(training).run();
}

}  // namespace concertina
