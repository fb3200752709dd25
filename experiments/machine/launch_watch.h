// A watch over a launch while its main thread is in a step: the death of another rank, or its stop,
// a host that is out of reach, after which that step never ends, or a launcher that will not wait
// until it has ended.
// Invariant: it only says what happened, what to do, and ends a launch that can never go on; one
// with a stopped rank, or a lost host, only where a supervisor starts it again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/heartbeats.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// Tells the supervisor that `ranks` have died, as rank `by` saw; `in_place`: the others may
/// continue without them.
void tell_of_death(const std::vector<int>& ranks, int by, bool in_place);

class LaunchWatch {
 public:
  /// Collective. Starts a thread if there are other ranks. `mpi` has started and outlives the
  /// watch.
  explicit LaunchWatch(MpiEnvironment& mpi);
  ~LaunchWatch();
  LaunchWatch(const LaunchWatch&) = delete;
  LaunchWatch& operator=(const LaunchWatch&) = delete;

  /// The command trains, and its newest checkpoint is of `step`; 0: there is none yet.
  void committed(std::int64_t step) noexcept { committed_ = step; }

  /// On every rank, where the caller goes on without up to `ranks` that die (LostRanks). Nothing
  /// comes of it where MPI cannot, or nobody supervises the launch.
  void expect_loss(int ranks);

 private:
  void watch();
  bool sleep(double seconds);  // false: this launch is over
  void leave_dead(const std::vector<int>& ranks);
  /// Tells the supervisor and ends the launch; tells people where there is no supervisor.
  void report(FaultKind fault, const std::vector<int>& ranks, const Error& error) const;
  void look_for_hosts(const LocalState& state);

  MpiEnvironment& mpi_;
  const int rank_, size_;
  const std::string supervised_;  // the run's directory; empty: by nobody
  Heartbeats heartbeats_;
  bool told_silent_ = false;
  std::atomic<std::int64_t> committed_ = -1;  // the command does not train
  std::atomic<int> may_lose_ = 0;             // ranks
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

/// "rank 2 has died" or "ranks 0,2-3 have died", with what to try after that. `committed`: as of
/// LaunchWatch::committed(), -1 for a command that does not train.
Error death_of(const std::vector<int>& ranks, std::int64_t committed);

}  // namespace concertina
