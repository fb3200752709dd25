#include "experiments/machine/launch_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/clock.h"
#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/output.h"
#include "experiments/machine/signals.h"
#include "io/run_files.h"

namespace concertina {
namespace {

constexpr double kLookSeconds = 0.1;
/// Somebody who looks into a rank, or moves it, stops it for less. On a busy machine looks are
/// rare.
constexpr double kStopSeconds = 1.2;
constexpr int kStopLooks = 4;
constexpr int kSignalLooks = 5;
/// mpirun ends the others within 2 s of a rank's death. Other launchers may never do.
constexpr double kLauncherSeconds = 5;
/// The main thread has so long to leave what it does where the launch goes on without dead ranks.
constexpr double kLeaveSeconds = 3;

/// "rank 2 stands still: a signal has stopped it", with what to try after that.
Error stop_of(const std::vector<int>& ranks) {
  return {Exit::failure,
          fmt::format("{} {} still: a signal has stopped {}", ranks_text(ranks),
                      ranks.size() == 1 ? "stands" : "stand", ranks.size() == 1 ? "it" : "them"),
          host_name(), "`kill -CONT` with the process' number lets it go on"};
}

}  // namespace

void tell_of_death(const std::vector<int>& ranks, int by, bool in_place) {
  tell_supervisor({.kind = FaultKind::died,
                   .ranks = ranks,
                   .by = by,
                   .what = death_of(ranks, 0).message(),
                   .in_place = in_place});
}

Error death_of(const std::vector<int>& ranks, std::int64_t committed) {
  std::string fix = "the same command again";
  if (committed > 0) fix = fmt::format("the same command: it resumes after step {}", committed);
  if (committed == 0)
    fix = "the same command with --from-scratch: there is no checkpoint yet (checkpoint.every)";
  return {Exit::failure,
          fmt::format("{} {} died: killed from outside, out of memory, or a crash",
                      ranks_text(ranks), ranks.size() == 1 ? "has" : "have"),
          fmt::format("{}; `dmesg` there names processes that were killed for memory", host_name()),
          fix};
}

LaunchWatch::LaunchWatch(MpiEnvironment& mpi)
    : mpi_(mpi),
      rank_(mpi.world().rank()),
      size_(mpi.world().size()),
      supervised_(supervised_run()),
      heartbeats_(mpi.world()) {
  if (mpi.local_size() > 1 || heartbeats_.has_neighbours())
    thread_ = std::thread([this] { watch(); });
}

LaunchWatch::~LaunchWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool LaunchWatch::sleep(double seconds) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; });
}

void LaunchWatch::report(FaultKind fault, const std::vector<int>& ranks, const Error& error) const {
  if (supervised_.empty()) return;
  append_fault(supervised_, {.kind = fault, .ranks = ranks, .by = rank_, .what = error.message()});
  abort_job(static_cast<int>(Exit::failure));
}

void LaunchWatch::tell_of_dead(const std::vector<int>& ranks) {
  const Error error = death_of(ranks, committed_);
  if (supervised_.empty()) {
    const std::string text = error_text(error, rank_);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
  report(FaultKind::died, ranks, error);
}

void LaunchWatch::tell_of_stopped(const std::vector<int>& ranks) {
  const Error error = stop_of(ranks);
  if (supervised_.empty())
    log::warn("{}, on {}: the other ranks wait for it; {}", error.message(), error.where(),
              error.fix());
  report(FaultKind::stopped, ranks, error);
}

/// This host may be the one that is cut off: then its ranks must not go on beside a later launch,
/// no launcher reaches them, and what all hosts share may stand still.
void LaunchWatch::tell_of_silent(const SilentHost& host) {
  const Error error(Exit::failure,
                    fmt::format("hosts {} ({}) and {} do not hear each other any more", host.name,
                                ranks_text(host.ranks), host_name()),
                    "heartbeats over UDP", "look whether both run, and reach each other");
  if (supervised_.empty())
    return log::warn("{} ({}): the other ranks wait for it; {}", error.message(), error.where(),
                     error.fix());
  constexpr unsigned kReportSeconds = 2;
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(kReportSeconds);
  append_fault(
      supervised_,
      {.kind = FaultKind::unreachable, .ranks = host.ranks, .by = rank_, .what = error.message()});
  mpi_.end_host();
}

/// A rank that has not started yet, or reads its data, beats too: this is a thread of its own.
void LaunchWatch::look_for_hosts(const LocalState& state) {
  heartbeats_.beat(state.speaks);
  if (!state.speaks || state.somebody_leaves || told_silent_) return;
  for (const SilentHost& host : heartbeats_.silent()) {
    told_silent_ = true;
    tell_of_silent(host);
  }
}

void LaunchWatch::expect_loss(int ranks) {
  if (!supervised_.empty() && mpi_.expect_loss()) may_lose_ = ranks;
}

void LaunchWatch::tell_of_signal() {
  log::warn(
      "SIGTERM: a checkpoint follows this step, but mpirun kills all ranks a second after Ctrl-C "
      "or SIGTERM; `kill -USR1 {}` (mpirun) waits for the checkpoint",
      ::getppid());
}

void LaunchWatch::watch() {
  bool told_dead = false, told_signal = false, told_stopped = false;
  int looks_with_signal = 0, looks_with_stopped = 0;
  double stopped_at = 0;
  std::vector<int> stopped;
  while (sleep(kLookSeconds)) {
    const LocalState state = mpi_.local_state();
    look_for_hosts(state);
    if (!state.speaks || state.somebody_leaves) continue;
    if (!state.dead.empty() && !told_dead) {
      told_dead = true;
      if (std::ssize(state.dead) <= may_lose_) {
        mpi_.tell_loss();
        tell_of_death(state.dead, rank_, /*in_place=*/true);
        if (!sleep(kLeaveSeconds)) return;
      }
      tell_of_dead(state.dead);
      if (sleep(kLauncherSeconds)) abort_job(static_cast<int>(Exit::failure));
    }
    // A launch that was stopped as a whole goes on where it was: looks are counted as well.
    if (state.stopped.empty() || state.stopped != stopped) {
      stopped = state.stopped;
      stopped_at = now();
      looks_with_stopped = 0;
      told_stopped = false;
    }
    if (!stopped.empty() && ++looks_with_stopped > kStopLooks &&
        now() - stopped_at > kStopSeconds && !std::exchange(told_stopped, true))
      tell_of_stopped(stopped);
    looks_with_signal = sigterm_waits() ? looks_with_signal + 1 : 0;
    // Ranks of other hosts may have ended the job, and have said why.
    if (looks_with_signal < kSignalLooks || told_signal || mpi_.local_size() < size_) continue;
    told_signal = true;
    tell_of_signal();
  }
}

}  // namespace concertina
