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
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/error.h"
#include "experiments/machine/heartbeats.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

/// The environment variable that `concertina run` sets for its launches: the run's directory.
inline constexpr const char* kSupervisedVariable = "CONCERTINA_SUPERVISED";

/// The key of lines for the supervisor: true beside a fault after which the launch may go on by
/// itself; alone, how many ranks are gone in all, once it does.
inline constexpr const char* kInPlace = "in_place";

/// The faults of a launch that ends by itself, once its ranks have said why: bad input, training
/// that has diverged and would again, and any other error that is not one of a system call.
inline constexpr const char* kRefused = "refused";
inline constexpr const char* kDiverged = "diverged";
inline constexpr const char* kFailed = "failed";

/// That directory; empty where nobody supervises this launch.
std::string supervised_run();
/// Appends `line` with the time, and this host if it names none, to the faults of the run in
/// `directory`.
void append_fault(const std::string& directory, nlohmann::ordered_json line);
/// The same for a supervised launch; nothing where nobody supervises it.
void tell_supervisor(nlohmann::ordered_json line);
/// Tells it that `ranks` have died, as rank `by` saw; `in_place`: the others may go on without
/// them.
void tell_of_death(const std::vector<int>& ranks, int by, bool in_place);

/// Writes a line of faults.jsonl for the supervisor of this launch, if there is one. `by`: this
/// rank.
void record_fault(const char* fault, const std::vector<int>& ranks, int by, const Error& error);

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
  void tell_of_dead(const std::vector<int>& ranks);
  void tell_of_stopped(const std::vector<int>& ranks);
  void tell_of_silent(const SilentHost& host);
  /// Tells the supervisor, if there is one, and ends the launch then.
  void report(const char* fault, const std::vector<int>& ranks, const Error& error) const;
  void look_for_hosts(const LocalState& state);
  void tell_of_signal();

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
