#include "experiments/machine/launch_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "core/clock.h"
#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/persistent_state.h"
#include "experiments/machine/signals.h"

namespace concertina {
namespace {

constexpr double kLookSeconds = 0.1;
/// Number of checks before the warning that SIGTERM remains pending until a long step ends.
constexpr Limit kSignalLimit{0, 5};
/// mpirun kills the other ranks within 2 s of a rank's death. Other launchers may never do so.
constexpr double kLauncherSeconds = 5;
/// Time for the main thread to leave its operation if the launch continues without the dead ranks.
constexpr double kLeaveSeconds = 3;
/// Time limit for recording a fault on storage that may not respond.
constexpr unsigned kReportSeconds = 2;

Error stop_of(const LocalState& state) {
  return {Exit::failure,
          fmt::format("{} {} stopped by a signal", ranks_text(state.stopped),
                      state.stopped.size() == 1 ? "has been" : "have been"),
          host_name(), fmt::format("to resume: kill -CONT {}", fmt::join(state.stopped_ids, " "))};
}

Error silence_of(const SilentHost& host) {
  return {Exit::failure,
          fmt::format("hosts {} ({}) and {} no longer receive each other's heartbeats", host.name,
                      ranks_text(host.ranks), host_name()),
          "heartbeats over UDP", "check that both are up and can reach each other"};
}

}  // namespace

void report_death(const std::vector<int>& ranks, int by, bool in_place) {
  notify_supervisor({.kind = FaultKind::died,
                     .ranks = ranks,
                     .by = by,
                     .what = death_of(ranks, 0).message(),
                     .in_place = in_place});
}

Error death_of(const std::vector<int>& ranks, std::int64_t committed) {
  std::string fix = "rerun the same command";
  if (committed > 0)
    fix = fmt::format("rerun the same command: it resumes after step {}", committed);
  if (committed == 0)
    fix =
        "rerun the same command with --from-scratch: there is no checkpoint yet (checkpoint.every)";
  return {Exit::failure,
          fmt::format("{} {} died: killed from outside, out of memory, or a crash",
                      ranks_text(ranks), ranks.size() == 1 ? "has" : "have"),
          fmt::format("{}; `dmesg` there lists processes killed when memory ran out", host_name()),
          fix};
}

LaunchWatch::LaunchWatch(MpiEnvironment& mpi)
    : mpi_(mpi),
      rank_(mpi.world().rank()),
      size_(mpi.world().size()),
      supervised_(supervised_run()),
      heartbeats_(mpi.world()) {
  if (mpi.local_size() > 1 || heartbeats_.has_neighbors())
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

bool LaunchWatch::sleep(const std::stop_token& stop, double seconds) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
  return !stop.stop_requested();
}

void LaunchWatch::report(FaultKind fault, const std::vector<int>& ranks, const Error& error) const {
  if (supervised_.empty() && fault == FaultKind::died) return print_error(error, rank_);
  if (supervised_.empty())
    return log::warn("{} ({}): the other ranks are waiting for it; {}", error.message(),
                     error.where(), error.fix());
  // This host may be the isolated one. Then its ranks must not continue alongside a later launch,
  // no launcher can reach them, and shared storage may not respond.
  const bool cut_off = fault == FaultKind::unreachable;
  if (cut_off) {
    std::signal(SIGALRM, SIG_DFL);
    ::alarm(kReportSeconds);
  }
  append_fault(supervised_, {.kind = fault, .ranks = ranks, .by = rank_, .what = error.message()});
  if (cut_off) mpi_.end_host();
  abort_job(static_cast<int>(Exit::failure));
}

/// Runs in a separate thread, so a rank also sends heartbeats while it starts or reads its data.
void LaunchWatch::look_for_hosts(const LocalState& state) {
  heartbeats_.beat(state.speaks);
  if (!state.speaks || state.somebody_leaves || reported_silent_) return;
  for (const SilentHost& host : heartbeats_.silent()) {
    reported_silent_ = true;
    report(FaultKind::unreachable, host.ranks, silence_of(host));
  }
}

void LaunchWatch::expect_loss(int ranks) {
  if (!supervised_.empty() && mpi_.expect_loss()) may_lose_ = ranks;
}

/// Continues the launch without these ranks, or aborts it.
void LaunchWatch::leave_dead(const std::stop_token& stop, const std::vector<int>& ranks) {
  if (std::ssize(ranks) <= may_lose_) {
    mpi_.report_loss();
    report_death(ranks, rank_, /*in_place=*/true);
    if (!sleep(stop, kLeaveSeconds)) return;
  }
  report(FaultKind::died, ranks, death_of(ranks, committed_));
  if (sleep(stop, kLauncherSeconds)) abort_job(static_cast<int>(Exit::failure));
}

void LaunchWatch::watch(const std::stop_token& stop) {
  bool reported_dead = false;
  PersistentState signal_waits, standing;
  std::vector<int> stopped;
  while (sleep(stop, kLookSeconds)) {
    const LocalState state = mpi_.local_state();
    look_for_hosts(state);
    if (!state.speaks || state.somebody_leaves) continue;
    if (!state.dead.empty() && !std::exchange(reported_dead, true)) leave_dead(stop, state.dead);
    standing.look(!state.stopped.empty() && state.stopped == stopped, now());
    stopped = state.stopped;
    if (standing.exceeds_first(kStopLimit)) report(FaultKind::stopped, stopped, stop_of(state));
    signal_waits.look(sigterm_waits(), now());
    // Ranks on other hosts may have aborted the job and reported the reason.
    if (mpi_.local_size() == size_ && signal_waits.exceeds_first(kSignalLimit))
      log::warn(
          "SIGTERM: a checkpoint follows this step, but mpirun kills all ranks one second after "
          "Ctrl-C or SIGTERM; `kill -USR1 {}` (mpirun) waits for the checkpoint",
          ::getppid());
  }
}

}  // namespace concertina
