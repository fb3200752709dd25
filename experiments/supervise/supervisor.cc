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
#include "core/text/number_text.h"
#include "experiments/launcher/launcher.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/signals.h"
#include "experiments/record/run_history.h"
#include "experiments/record/run_lines.h"
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

constexpr double kPollSeconds = 0.05;
/// A launcher has so long to return once its ranks have ended, which are looked for so often.
constexpr double kLauncherSeconds = 0.6, kRanksSeconds = 0.2;
/// All ranks stand still for so long, seen so often, before that is a fault.
constexpr double kStandSeconds = 1.2;
/// Some of them, where the others do not say so: they wait in the start of MPI.
constexpr double kOneStandsSeconds = 2.5;
constexpr int kStopLooks = 4;
/// Until a launch that has no rank on this host has loaded what it goes on from.
constexpr double kStartSeconds = 1200;
/// Ranks do not outlive one that died by so much: MPI, or the watch of a launch, ends them, but for
/// ranks that wait in the start of an MPI that tolerates deaths.
constexpr double kAloneSeconds = 1.5;
/// From the first of them until all are there.
constexpr double kArriveSeconds = 10;
/// One whose ranks were ended by us may do nothing for a second, and what it leaves is known.
constexpr double kClearSeconds = 0.2;
/// A launch that was told to stop commits a checkpoint, which takes as long as storage takes.
constexpr double kStopSeconds = 600;
/// So long after a fault a launch says that it goes on by itself, or is ended.
constexpr double kInPlaceSeconds = 5;
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
      checkpoints_(checkpoint_directory(config)),
      pool_(options_.hosts, [this](const std::vector<Host>& hosts,
                                   const char* task) { return question(hosts, task); }),
      ranks_(options_.ranks) {}

/// Asks hosts whether they are there, on the way that their ranks are started on. `task`: an option
/// of `run --here` (run.cc).
ProcessOptions Supervisor::question(std::vector<Host> hosts, const char* task) const {
  std::vector<std::string> args{"run", "--here", directory_};
  if (*task != 0) args.emplace_back(task);
  for (Host& host : hosts) host.slots = 1;
  return {.words = launch_words(options_.launcher, slots_of(hosts), options_.program, args,
                                "--launcher", hosts_text(hosts)),
          .environment = launch_environment(),
          .told_of_our_end = true};
}

/// Those that answer; a moment without any need not be the end.
std::vector<Host> Supervisor::hosts_there() {
  for (int attempt = 1;; ++attempt) {
    for (const std::string& host : pool_.ask()) {
      const std::string what =
          fmt::format("host {} does not answer: it is lost until it does", host);
      log::warn("{}", what);
      append_fault(directory_, {.kind = FaultKind::lost, .host = host, .what = what});
    }
    std::vector<Host> there = pool_.for_ranks(options_.ranks);
    if (!there.empty() || attempt == kMostInVain || stopped()) return there;
    const double until = now() + std::exp2(attempt);
    while (now() < until && !stopped()) sleep_briefly();
  }
}

bool Supervisor::muster() {
  if (pool_.empty()) return true;
  const std::vector<Host> there = hosts_there();
  if (stopped()) return false;
  const int slots = slots_of(there);
  const std::optional<FittingLayout> layout =
      slots < options_.ranks ? layout_for(config_, slots) : FittingLayout{slots};
  if (!layout) {
    summary_.code = static_cast<int>(Exit::failure);
    summary_.why = there.empty() ? "no host answers"
                                 : fmt::format("the run fits no number of ranks up to {}", slots);
    return false;
  }
  ranks_ = layout->ranks;
  fit_ = layout->arguments;
  hosts_ = hosts_text(first_slots(there, ranks_));
  if (ranks_ < options_.ranks)
    log::warn("{} in place of {}, on {}{}", counted(ranks_, "rank"), options_.ranks, hosts_,
              fit_.empty() ? "" : ": " + shell_line(fit_));
  return true;
}

ChildOptions Supervisor::child() const {
  std::vector<std::string> args = options_.args;
  if (launched_) std::erase(args, "--from-scratch");  // that was for the first one
  args.insert(args.end(), fit_.begin(), fit_.end());
  std::map<std::string, std::string> environment = launch_environment();
  environment.insert_or_assign(kSupervisedVariable, directory_);
  return {.process = {.words = launch_words(options_.launcher, ranks_, options_.program, args,
                                            "--launcher", hosts_),
                      .environment = std::move(environment),
                      .out = STDOUT_FILENO},
          .log = {},
          .mark = directory_,
          .program = options_.program};
}

std::int64_t Supervisor::newest_state() const {
  recover_commits(checkpoints_);
  const std::optional<Commit> commit = newest_commit(checkpoints_);
  return std::max(commit ? commit->step : 0, newest_snapshot_part(snapshot_run(directory_)));
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
  LineFollower faults(run_file(directory_, kFaultsFile));
  faults.skip();
  RanksSeen ranks{.launched = now(), .launcher_ran = now(), .launches = launch_bytes()};
  std::optional<End> open;
  for (;; sleep_briefly()) {
    const std::optional<int> code = child.exit_code();
    std::optional<End> end = judge(faults.look(), open, ranks);
    if (code && !end) end = open;
    if (end) {
      end_all(child);
      end->code = code.value_or(1);
      return *end;
    }
    if (code) {
      const double seen = now();
      end_all(child);
      return {*code, FaultKind::ended, how_it_ended(*code), seen};
    }
    if (summary_.stopped_by == 0 && (summary_.stopped_by = stop_signal()) != 0) tell_to_stop(child);
    if (summary_.stopped_by != 0 && now() > told_at_ + kStopSeconds) {
      end_all(child);
      return {1, FaultKind::ended,
              fmt::format("no end {:g} s after it was told to stop", kStopSeconds), now()};
    }
    if (open) ranks.all_there = now();
    if (end = look_at_ranks(child, ranks); end) {
      end_all(child);
      return open && ends_itself(open->kind) ? *open : *end;
    }
  }
}

std::optional<Supervisor::End> Supervisor::judge(const std::vector<nlohmann::json>& lines,
                                                 std::optional<End>& open, RanksSeen& ranks) {
  for (const nlohmann::json& line : lines) {
    if (const std::optional<LaunchFault> fault = fault_in(line)) {
      // A rank may fail of the death of another one, and say so first.
      if (!open || open->kind == FaultKind::failed) open = End{1, fault->kind, fault->what, now()};
      if (!fault->in_place.value_or(false) && !ends_itself(fault->kind)) return open;
    } else if (open && tells_in_place(line)) {
      record_in_place(*open);
      open.reset();
      ranks.count = 0;
      ranks.fewer = true;
    }
  }
  return open && now() > open->fault_at + kInPlaceSeconds ? open : std::nullopt;
}

/// The line of a launch that has gone on without some of its ranks.
void Supervisor::record_in_place(const End& fault) {
  const Restart restart = restart_of(fault, newest_state(), /*in_place=*/true);
  ++summary_.in_place;
  log::warn("launch {}: {}; it goes on by itself after step {}", restart.launch, restart.why,
            restart.from);
}

/// Lets a launcher go on that a signal has stopped: without it MPI neither starts nor ends.
void Supervisor::look_at_launcher(const ChildProcess& child, RanksSeen& ranks, double at) {
  if (!child.launcher_stands_still()) ranks.launcher_ran = at;
  if (at < ranks.launcher_ran + kStandSeconds) return;
  log::warn("a signal has stopped the launcher: SIGCONT lets it go on");
  child.signal(SIGCONT);
  ranks.launcher_ran = at;
}

/// Until the launch has begun, its ranks on other hosts have nobody else who sees that they stand
/// still, or that their host is gone. A launch that is only slow goes on.
std::optional<Supervisor::End> Supervisor::look_at_hosts(RanksSeen& ranks, double at) {
  if (hosts_.empty() || at < ranks.launched + ranks.question_after ||
      launch_bytes() != ranks.launches)
    return std::nullopt;
  ranks.question_after *= 2;
  const std::vector<std::string> lost = pool_.ask("--look");  // stopped ranks are told as faults
  if (pool_.all_lost()) return std::nullopt;  // this host's network, or what they all load from
  for (const Host& host : parse_hosts(hosts_, "--hosts"))
    if (std::ranges::find(lost, host.name) != lost.end())
      return End{1, FaultKind::lost,
                 fmt::format("host {} does not answer, and no launch has begun", host.name), at};
  return std::nullopt;
}

/// Returns the bytes of launches.jsonl, where a launch that has begun adds a line.
std::uintmax_t Supervisor::launch_bytes() const {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(run_file(directory_, kLaunchesFile), none);
  return none ? 0 : size;
}

/// What the ranks of this host cannot say themselves: that all of them have ended, or stand still.
std::optional<Supervisor::End> Supervisor::look_at_ranks(ChildProcess& child, RanksSeen& ranks) {
  const double at = now();
  if (at < ranks.next_look) return std::nullopt;
  ranks.next_look = at + kRanksSeconds;
  if (child.has_program()) {
    ranks.last = at;
    ranks.stopped_looks = child.stopped_programs() > 0 ? ranks.stopped_looks + 1 : 0;
    if (ranks.stopped_looks == 0) ranks.ran = at;
    if (!ranks.fewer && child.ranks_here() > 0)
      ranks.count = child.ranks_here();
    else if (!ranks.fewer || ranks.count == 0)
      ranks.count = std::max(ranks.count, child.programs());
    ranks.complete = ranks.complete || child.programs() >= ranks.count;
    if (child.programs() >= ranks.count || ranks.all_there == 0) ranks.all_there = at;
    if (at > ranks.all_there + (ranks.complete ? kAloneSeconds : kArriveSeconds))
      return End{1, FaultKind::died, "a rank on this host has ended, and nobody ends the others",
                 at};
  }
  look_at_launcher(child, ranks, at);
  if (std::optional<End> end = look_at_hosts(ranks, at)) return end;
  if (ranks.last == 0 && at > ranks.launched + kStartSeconds && launch_bytes() == ranks.launches)
    return End{1, FaultKind::launcher,
               fmt::format("no launch has begun within {:g} s", kStartSeconds), at};
  if (ranks.last > 0 && at > ranks.last + kLauncherSeconds)
    return End{1, FaultKind::launcher,
               "all ranks on this host have ended, and the launcher did not return", at};
  // Looks are counted: this process may have been stopped with them, and goes on with them.
  const bool all = child.stopped_programs() == child.programs();
  if (ranks.stopped_looks >= kStopLooks &&
      at > ranks.ran + (all ? kStandSeconds : kOneStandsSeconds))
    return End{
        1, FaultKind::stopped,
        fmt::format("{} on this host, and a signal has stopped {}",
                    all ? "all ranks stand still" : "a rank stands still", all ? "them" : "it"),
        at};
  return std::nullopt;
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
  const bool refused =
      end.kind == FaultKind::refused ||
      (end.kind == FaultKind::ended && end.code == static_cast<int>(Exit::bad_input));
  const bool older = refused && put_damaged_aside();
  const std::int64_t newest = newest_state();
  in_vain_ = newest > newest_ || older ? 0 : in_vain_ + 1;
  newest_ = newest;
  // Once a launch has begun, one whose ranks do not start may have met a fault that passes.
  const bool never_began =
      end.kind == FaultKind::ended && end.code < 128 && launch_bytes() == launches_before_;
  const std::string before = std::exchange(
      last_words_, end.kind == FaultKind::failed || never_began ? end.why + hosts_ : "");
  const bool again = in_vain_ > 0 && !before.empty() && before == last_words_;
  if (refused && !older) {
    summary_.code = static_cast<int>(Exit::bad_input);
    summary_.why = "the launch was refused: the same command would be refused again";
  } else if (end.kind == FaultKind::diverged || again) {
    summary_.code = static_cast<int>(Exit::failure);
    summary_.why = never_began
                       ? "2 launches ended in the same way before their ranks had started; what "
                         "the launcher printed says why"
                       : "the same command would fail again, at the same place";
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

/// Whether this process was told to stop; the summary says so then.
bool Supervisor::stopped() {
  if (summary_.stopped_by == 0) summary_.stopped_by = stop_signal();
  if (summary_.stopped_by == 0) return false;
  summary_.code = static_cast<int>(Exit::preempted);
  summary_.why =
      fmt::format("stopped by {}; the same command goes on", signal_text(summary_.stopped_by));
  return true;
}

/// Writes down that the run goes on from step `from` after a fault.
Restart Supervisor::restart_of(const End& fault, std::int64_t from, bool in_place) {
  const Restart restart{.launch = summary_.restarts + 1,
                        .ranks = ranks_,
                        .hosts = hosts_,
                        .why = fault.why,
                        .kind = fault.kind,
                        .reached = std::max(read_history(directory_).steps, from),
                        .from = from,
                        .ended_s = now() - fault.fault_at,
                        .waited_s = in_place ? 0 : pause(),
                        .in_place = in_place};
  append_restart(run_file(directory_, kRestartsFile), restart);
  summary_.steps_repeated += restart.reached - restart.from;
  return restart;
}

/// Waits for the turn of the launch that follows.
void Supervisor::restart_after(const End& end) {
  const Restart restart = restart_of(end, newest_, /*in_place=*/false);
  ++summary_.restarts;
  log::warn("launch {}: {}; goes on after step {}{}", restart.launch, restart.why, restart.from,
            restart.waited_s > 0 ? fmt::format(" in {:g} s", restart.waited_s) : "");
  for (const double until = now() + restart.waited_s; now() < until && !stopped();) sleep_briefly();
}

void Supervisor::run_launches() {
  double down_since = 0;
  while (muster()) {
    std::optional<ChildProcess> process(child());
    if (down_since > 0) summary_.down_seconds += now() - down_since;
    const End end = watch(*process);
    process.reset();
    launched_ = true;
    if (is_finished(directory_, config_, /*or_longer=*/true) || stopped()) return;
    if (!goes_on(end)) {
      if (summary_.code != static_cast<int>(Exit::bad_input))
        summary_.why += "; the last one: " + end.why;
      return;
    }
    restart_after(end);
    if (stopped()) return;
    down_since = end.fault_at;
  }
}

/// What runs have left on this host whose directory was removed before this one had its name.
void Supervisor::forget_former_runs() const {
  for (const auto& [prefix, set] : own_snapshot_sets())
    if (set.directory == directory_ && prefix != snapshot_prefix(directory_))
      remove_snapshots(prefix);
}

/// After a failure somebody may mend what was wrong: what no checkpoint has is kept for that.
bool Supervisor::needs_snapshots() const {
  if (summary_.code == 0 || summary_.code == static_cast<int>(Exit::preempted)) return false;
  const std::int64_t newest = newest_snapshot_part(snapshot_run(directory_));
  const std::optional<Commit> commit = newest_commit(checkpoints_);
  if (newest <= (commit ? commit->step : 0)) return false;
  log::warn(
      "step {} is in memory alone: the same command goes on from there, and `rm {}.*` frees "
      "the memory",
      newest, snapshot_prefix(directory_));
  return true;
}

/// On all hosts: one that was not in the last launch may have some.
void Supervisor::forget_snapshots() {
  remove_snapshots(snapshot_prefix(directory_));
  if (summary_.restarts > 0 && !pool_.empty()) pool_.ask("--forget");
}

SuperviseSummary Supervisor::run() {
  const double began = now();
  RunDirectory::require_usable(config_.run.dir, config_.run.name);
  make_directories(directory_);
  const std::string lock_path = run_file(directory_, kSupervisorLock);
  launched_ = std::filesystem::exists(lock_path);  // by a `concertina run` that was killed, maybe
  {
    const FileLock lock(lock_path, "this run",
                        "wait until that `concertina run` has ended, or end it");
    if (const int left = kill_marked(directory_); left > 0)
      log::warn("processes of an earlier launch of this run that had to be ended: {}", left);
    forget_former_runs();
    newest_ = newest_state();
    launches_before_ = launch_bytes();
    run_launches();
  }
  if (!needs_snapshots()) forget_snapshots();
  if (!RunDirectory::exists(config_.run.dir, config_.run.name)) {  // refused: nothing is left of it
    std::error_code ignored;
    std::filesystem::remove(lock_path, ignored);
    std::filesystem::remove(run_file(directory_, kFaultsFile), ignored);
    std::filesystem::remove(directory_, ignored);
  }
  summary_.seconds = now() - began;
  return summary_;
}

}  // namespace concertina
