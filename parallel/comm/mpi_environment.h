// Lifetime of MPI in this process: initialized on first use, finalized at exit, aborted on failure.
// Invariant: no rank is left waiting. An exception that leaves the environment's scope aborts the
// whole job, as does a launch with a different number of ranks than was requested.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/comm/operation_log.h"

namespace concertina {

class LocalRanks;
class MpiLoss;

/// Number of ranks requested from the launcher: OMPI_COMM_WORLD_SIZE, then SLURM_STEP_NUM_TASKS
/// (Slurm's other variables are misleading under mpirun), then PMI_SIZE. Empty without a launcher.
struct LaunchRequest {
  int ranks = 0;
  std::string variable;
};
std::optional<LaunchRequest> launch_request();
/// Returns the world size named by launch_request(), or 0 without a launcher.
int expected_world_size();
/// Returns the rank assigned by the launcher, or 0 without one. Works before initialization.
int launcher_rank();

/// Throws Error{bad_input} with a fix unless MPI's world has the requested number of `ranks`.
void check_launch(const std::optional<LaunchRequest>& request, int ranks);

/// Terminates all ranks of the job with exit code `code`, from any thread, even if MPI hangs or
/// never started. Prints nothing and suppresses Open MPI 4's message: the caller has reported why.
[[noreturn]] void abort_job(int code);

/// Known state of the processes of this host's other ranks.
struct LocalState {
  std::vector<int> dead;         // world ranks whose process has exited
  std::vector<int> stopped;      // world ranks whose process has been stopped, e.g. by SIGSTOP
  std::vector<int> stopped_ids;  // their process ids
  bool somebody_leaves = false;  // a rank aborts the job on purpose and has reported why
  bool speaks = false;           // this is the lowest rank on the host that is alive and running
};

/// Whether the MPI library of this build can report failed ranks.
bool ulfm_available();
/// Returns the name and version of the MPI library. Works before initialization.
std::string mpi_library();
/// Returns the path of the loaded MPI library.
std::string mpi_library_file();
/// Returns "yes", "no" or "unknown": whether MPI accepts device pointers. Works before
/// initialization.
std::string mpi_cuda_aware();

/// `main` declares it outside its try block and ends a failed job with abort_job(code) if
/// started(). If destroyed by an exception, it aborts the job without giving a reason.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  /// Initializes MPI on the first call (main thread, collective). Throws like check_launch().
  Communicator& world();
  bool started() const { return world_ != nullptr; }
  /// Returns the state of this host's ranks without waiting. Requires world(). Any thread.
  LocalState local_state() const;
  /// Kills all ranks of this host immediately, including this one, without MPI: for a host that has
  /// lost its network connection. Any thread.
  [[noreturn]] void end_host() const;
  /// Returns this rank's operation log (null if MPI provides no shared memory), and the logs of all
  /// world ranks (null for ranks of other hosts). They live as long as this object. Require
  /// world().
  OperationLog* operations() const;
  std::vector<const OperationLog*> operations_of_host() const;
  /// Returns whether the launch can continue without ranks that die, as under `mpirun --with-ft
  /// ulfm`. If so, a death from now on ends all pending operations on every rank with LostRanks.
  bool expect_loss();
  /// Reports that ranks have died. Any thread, after expect_loss().
  void report_loss() noexcept;
  /// Replaces world() with the surviving ranks in their old order, and returns the number of lost
  /// ranks. Call it after LostRanks, once all users of world() are destroyed. Collective over the
  /// survivors. Throws Error{failure} if they are not a majority of the old world or cannot agree.
  /// Does not return if MPI hangs.
  int go_on();
  /// Number of ranks lost since the launch.
  int lost() const { return lost_; }
  /// Exits the process if MPI cannot be finalized, after go_on(). Call it at the end of `main`.
  void leave(int code);
  /// Number of ranks on this host and this rank's index among them. Both initialize MPI.
  int local_rank() { return world(), local_rank_; }
  int local_size() { return world(), local_size_; }

 private:
  void start();

  std::unique_ptr<Communicator> world_;
  std::shared_ptr<MpiLoss> loss_;
  std::unique_ptr<LocalRanks> local_ranks_;
  bool owns_mpi_ = false;
  int local_rank_ = 0, local_size_ = 1, lost_ = 0;
};

}  // namespace concertina
