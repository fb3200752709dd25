// The processes of this host's ranks, and which of them have died.
// Invariants: no call waits for another rank once the object is made; a rank that ends the job on
// purpose says so first, and is never taken for dead.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

class LocalRanks {
 public:
  /// Collective over `local`, the ranks of this host. `rank`: of this process in the world. Where
  /// MPI gives no shared memory, nobody is known and nobody dies; a rank in a container whose
  /// processes have numbers of their own is not watched.
  LocalRanks(MPI_Comm local, int rank);
  /// Collective.
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  /// From any thread: this rank is about to end the job, and has said why.
  void leave() noexcept {
    if (own_ != nullptr) own_->leaves.store(1);
  }
  /// The ranks of `before` that live are those of `now`.
  void renumber(MPI_Comm before, MPI_Comm now);
  LocalState state() const;
  /// SIGKILL to the others.
  void kill_others() const;
  OperationLog* operations() const { return own_ == nullptr ? nullptr : &own_->operations; }
  /// By rank of the world, null of other hosts.
  std::vector<const OperationLog*> all_operations(int ranks) const;

 private:
  struct Slot {  // in memory that all ranks of the host share, one per rank
    std::atomic<std::int32_t> rank;
    std::int32_t process;
    std::uint64_t processes;  // which numbering of processes `process` is of
    std::atomic<std::int32_t> leaves;
    OperationLog operations;
  };

  MPI_Win window_ = MPI_WIN_NULL;
  Slot* own_ = nullptr;
  std::vector<const Slot*> slots_;  // by rank
  std::vector<const Slot*> all_;    // also of processes that have numbers of their own
};

}  // namespace concertina
