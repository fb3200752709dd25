#include "experiments/machine/launch_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/machine.h"
#include "experiments/machine/signals.h"

namespace concertina {
namespace {

constexpr double kLookSeconds = 0.25;
/// mpirun ends the others within 2 s of a rank's death. Other launchers may never do.
constexpr double kLauncherSeconds = 5;

}  // namespace

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
    : mpi_(mpi), rank_(mpi.world().rank()), size_(mpi.world().size()) {
  if (mpi.local_size() > 1) thread_ = std::thread([this] { watch(); });
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

void LaunchWatch::tell_of_dead(const std::vector<int>& ranks) {
  const std::string text = error_text(death_of(ranks, committed_), rank_);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void LaunchWatch::tell_of_signal() {
  log::warn(
      "SIGTERM: a checkpoint follows this step, but mpirun kills all ranks a second after Ctrl-C "
      "or SIGTERM; `kill -USR1 {}` (mpirun) waits for the checkpoint",
      ::getppid());
}

void LaunchWatch::watch() {
  bool told_dead = false, told_signal = false;
  int looks_with_signal = 0;
  while (sleep(kLookSeconds)) {
    const LocalState state = mpi_.local_state();
    if (!state.speaks || state.somebody_leaves) continue;
    if (!state.dead.empty() && !told_dead) {
      told_dead = true;
      tell_of_dead(state.dead);
      if (sleep(kLauncherSeconds)) abort_job(static_cast<int>(Exit::failure));
    }
    looks_with_signal = sigterm_waits() ? looks_with_signal + 1 : 0;
    // Ranks of other hosts may have ended the job, and have said why.
    if (looks_with_signal < 2 || told_signal || mpi_.local_size() < size_) continue;
    told_signal = true;
    tell_of_signal();
  }
}

}  // namespace concertina
