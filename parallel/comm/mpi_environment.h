// MPI's life in this process: started when first needed, finalised at the end, aborted on failure.
// Invariant: no rank is left waiting: an exception that leaves the environment's scope ends the
// whole job, and so does a launch that is not what the launcher was asked for.
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

/// Ranks that the launcher was asked for: OMPI_COMM_WORLD_SIZE, else SLURM_STEP_NUM_TASKS (Slurm's
/// other variables mislead under mpirun), else PMI_SIZE. Empty where no launcher is seen.
struct LaunchRequest {
  int ranks = 0;
  std::string variable;
};
std::optional<LaunchRequest> launch_request();
/// The world size that launch_request() names; 0 where no launcher is seen.
int expected_world_size();
/// The rank that the launcher gave this process; 0 where none is seen. Needs no initialisation.
int launcher_rank();

/// Throws bad input, with a fix, unless MPI's world of `ranks` is what the launcher was asked for.
void check_launch(const std::optional<LaunchRequest>& request, int ranks);

/// Ends every rank of the job with `code`, from any thread, also if MPI hangs or never started.
/// Says nothing, and keeps Open MPI 4 from adding its own paragraph: the caller has said why.
[[noreturn]] void abort_job(int code);

/// The state of the processes of this host's ranks, as far as it is known: of others than the rank
/// that speaks, it is not.
struct LocalState {
  std::vector<int> dead;         // ranks of the world whose process is gone
  std::vector<int> stopped;      // whose process stands still, by SIGSTOP for example
  bool somebody_leaves = false;  // a rank ends the job on purpose, and has said why
  bool speaks = false;           // this is the lowest rank of the host that lives and runs
};

/// Whether the MPI that we were built with can report failed ranks.
bool ulfm_available();
/// Name and version of the MPI library. Needs no initialisation.
std::string mpi_library();
/// The file that it was loaded from.
std::string mpi_library_file();
/// "yes", "no" or "unknown": whether MPI takes device pointers. Needs no initialisation.
std::string mpi_cuda_aware();

/// `main` keeps it outside of its try block, and ends a failed job by abort_job(code) if started().
/// Destroyed by an exception it does that itself, but can no longer say why.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  /// Starts MPI on the first call (main thread, collective). Throws as check_launch does.
  Communicator& world();
  bool started() const { return world_ != nullptr; }
  /// After the first world(); from any thread. Waits for nobody.
  LocalState local_state() const;
  /// Ends all ranks of this host at once, this one too, from any thread, without MPI: for a host
  /// that nobody reaches.
  [[noreturn]] void end_host() const;
  /// After the first world(): this rank's operations, null where MPI shares no memory; and those of
  /// every rank of the world, null of other hosts. They live as long as this.
  OperationLog* operations() const;
  std::vector<const OperationLog*> operations_of_host() const;
  /// Whether the launch can go on without ranks that die, as `mpirun --with-ft ulfm` lets it. If
  /// so, from now on their death ends all that is under way with LostRanks, on every rank.
  bool expect_loss();
  /// From any thread, after expect_loss(): ranks have died.
  void tell_loss() noexcept;
  /// After LostRanks, once all is destroyed that uses world(): that is the ranks that live now, in
  /// their old order. Returns how many are gone. Collective over the living. Throws a failure where
  /// these are not the most of the old world, or do not come together; does not return where MPI
  /// hangs.
  int go_on();
  /// Ranks that are gone since the launch began.
  int lost() const { return lost_; }
  /// At the end of `main`: ends the process where MPI cannot be finalised, after go_on().
  void leave(int code);
  /// Ranks on this host, and our number among them; start MPI too.
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
