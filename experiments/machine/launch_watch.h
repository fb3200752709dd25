// Watches a launch while its main thread is in a step, which never ends once another rank has died
// or stopped or a host is lost, and detects a launcher that is about to kill the ranks before the
// step ends. Invariant: it only reports what happened and how to fix it, and aborts a launch that
// cannot continue (after a rank has stopped or a host is lost, only if it is supervised).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "core/error.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/heartbeats.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Reports to the supervisor that `ranks` have died, as detected by rank `by`. `in_place`: the
/// others may continue without them.
void report_death(const std::vector<int>& ranks, int by, bool in_place);

class LaunchWatch {
 public:
  /// Starts a thread if there are other ranks. `mpi` is running and must outlive this. Collective.
  explicit LaunchWatch(MpiEnvironment& mpi);
  LaunchWatch(const LaunchWatch&) = delete;
  LaunchWatch& operator=(const LaunchWatch&) = delete;

  /// Called if the command trains, with the newest checkpoint's step, or 0 if there is none yet.
  void committed(std::int64_t step) noexcept { committed_ = step; }

  /// Called on every rank if the caller can continue after up to `ranks` ranks have died
  /// (LostRanks). Has no effect if MPI cannot continue, or if the launch is not supervised.
  void expect_loss(int ranks);

 private:
  void watch(const std::stop_token& stop);
  /// Returns false if this launch is over.
  bool sleep(const std::stop_token& stop, double seconds);
  void leave_dead(const std::stop_token& stop, const std::vector<int>& ranks);
  /// Reports to the supervisor and aborts the launch; without a supervisor, informs the user.
  void report(FaultKind fault, const std::vector<int>& ranks, const Error& error) const;
  void look_for_hosts(const LocalState& state);

  MpiEnvironment& mpi_;
  const int rank_, size_;
  const std::string supervised_;  // the run's directory; empty: not supervised
  Heartbeats heartbeats_;
  bool reported_silent_ = false;
  std::atomic<std::int64_t> committed_ = -1;  // -1: the command does not train
  std::atomic<int> may_lose_ = 0;             // number of ranks
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // declared last: it ends before what it uses
};

/// Returns the error "rank 2 has died" or "ranks 0,2-3 have died" with its fix. `committed`: as in
/// LaunchWatch::committed(), or -1 for a command that does not train.
Error death_of(const std::vector<int>& ranks, std::int64_t committed);

}  // namespace concertina
